//! What a command has to say.

/// Lines of output and of errors, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    parts: Vec<(bool, String)>,
    failed: bool,
}

impl Report {
    /// What a daemon called `program` has answered, taken apart again.
    pub fn from_answer(answer: Result<String, String>, program: &str) -> Self {
        let failed = answer.is_err();
        let text = answer.unwrap_or_else(|text| text);
        let prefix = format!("{program}: ");
        let mut report = Self {
            parts: Vec::new(),
            failed,
        };
        for line in text.split_inclusive('\n') {
            match line.strip_prefix(&prefix) {
                Some(error) => report.complain(error.trim_end()),
                None => report.print(line),
            }
        }
        if failed && report.parts.iter().all(|(is_error, _)| !is_error) {
            // The daemon did not come so far as to run the command.
            report.parts = vec![(true, text.trim_end().to_owned())];
        }
        report
    }

    /// Adds output.
    pub fn print(&mut self, text: impl Into<String>) {
        self.parts.push((false, text.into()));
    }

    /// Adds an error, which does not yet make the command fail.
    pub fn complain(&mut self, text: impl Into<String>) {
        self.parts.push((true, text.into()));
    }

    /// The command failed.
    pub const fn fail(&mut self) {
        self.failed = true;
    }

    /// Whether the command failed.
    pub const fn failed(&self) -> bool {
        self.failed
    }

    /// Output (false) and errors (true), the latter without the program's name and without
    /// a newline at the end.
    pub fn parts(&self) -> impl Iterator<Item = (bool, &str)> {
        self.parts.iter().map(|(error, text)| (*error, &text[..]))
    }

    /// All of it as one text, errors with `program` before them; as an error if the command
    /// failed.
    ///
    /// # Errors
    /// The text, if the command failed.
    pub fn into_result(self, program: &str) -> Result<String, String> {
        let mut text = String::new();
        for (is_error, part) in self.parts() {
            if is_error {
                text += &format!("{program}: {part}\n");
            } else {
                text += part;
            }
        }
        if self.failed { Err(text) } else { Ok(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart() {
        let mut report = Report::default();
        report.print("one\n");
        report.complain("two (Invalid argument)");
        report.print("three\n");
        for fails in [false, true] {
            if fails {
                report.fail();
            }
            let answer = report.clone().into_result("ovs-vswitchd");
            assert_eq!(Report::from_answer(answer, "ovs-vswitchd"), report);
        }
        let refused = Report::from_answer(Err("no such command\n".to_owned()), "ovs-vswitchd");
        let parts: Vec<_> = refused.parts().collect();
        assert_eq!(parts, [(true, "no such command")]);
        assert!(refused.failed());
    }
}
