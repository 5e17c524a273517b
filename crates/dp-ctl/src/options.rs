//! Options that the commands share.

/// Who asks: some commands differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// A control socket's client.
    #[default]
    Control,
    /// `ovs-dpctl`.
    Tool,
}

/// What the options say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `-s`, `--statistics`: counters of ports and flows.
    pub statistics: bool,
    /// `-m`, `--more`: flows with everything about them.
    pub more: bool,
    /// `--names` or `--no-names`; with neither, names go with `-m`.
    pub names: Option<bool>,
    /// `--clear`: a flow that is changed begins to count anew.
    pub clear: bool,
    /// `--may-create`: a flow to be changed need not be there.
    pub may_create: bool,
}

impl Options {
    /// Whether ports are shown by name.
    pub fn shows_names(&self) -> bool {
        self.names.unwrap_or(self.more)
    }

    /// Takes the options out of the arguments of a control command; the operands.
    ///
    /// # Errors
    /// An option that is not known.
    pub fn take(args: &[String]) -> Result<(Self, Vec<&str>), String> {
        let mut options = Self::default();
        let mut operands = Vec::new();
        for arg in args {
            if let Some(letters) = arg.strip_prefix('-').filter(|l| !l.starts_with('-')) {
                if letters.is_empty() {
                    // A lone dash is the name of a file.
                    operands.push(&arg[..]);
                }
                letters.chars().try_for_each(|c| options.letter(c))?;
            } else if arg.starts_with("--") {
                options.word(arg)?;
            } else {
                operands.push(&arg[..]);
            }
        }
        Ok((options, operands))
    }

    fn letter(&mut self, letter: char) -> Result<(), String> {
        match letter {
            'm' => self.more = true,
            's' => self.statistics = true,
            other => return Err(format!("Unrecognized option -{other}")),
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        match word {
            "--statistics" => self.statistics = true,
            "--clear" => self.clear = true,
            "--may-create" => self.may_create = true,
            "--more" => self.more = true,
            "--names" => self.names = Some(true),
            "--no-names" => self.names = Some(false),
            other => return Err(format!("Unrecognized option {other}")),
        }
        Ok(())
    }

    /// The same options as arguments of a control command.
    pub fn to_args(self) -> Vec<String> {
        let given = [
            (self.statistics, "--statistics"),
            (self.more, "--more"),
            (self.names == Some(true), "--names"),
            (self.names == Some(false), "--no-names"),
            (self.clear, "--clear"),
            (self.may_create, "--may-create"),
        ];
        let given = given.into_iter().filter(|(is_given, _)| *is_given);
        given.map(|(_, word)| word.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(args: &[&str]) -> Result<(Options, Vec<String>), String> {
        let args: Vec<String> = args.iter().map(|a| (*a).to_owned()).collect();
        let (options, operands) = Options::take(&args)?;
        Ok((options, operands.into_iter().map(str::to_owned).collect()))
    }

    #[test]
    fn options_come_out_as_they_went_in() {
        let (options, operands) = take(&["-ms", "--no-names", "dp", "-", "--clear"]).unwrap();
        assert!(options.more && options.statistics && options.clear && !options.shows_names());
        assert_eq!(operands, ["dp", "-"]);
        let again = Options::take(&options.to_args()).unwrap().0;
        assert_eq!(again, options);
        assert!(take(&["-m"]).unwrap().0.shows_names());
    }

    #[test]
    fn unknown_options_are_named() {
        let error = |arg: &str| take(&[arg]).unwrap_err();
        assert_eq!(error("-mx"), "Unrecognized option -x");
        assert_eq!(error("--foo"), "Unrecognized option --foo");
    }
}
