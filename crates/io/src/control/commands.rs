//! The commands of a daemon.

use std::collections::BTreeMap;
use std::fmt;

use base::getopt::{Getopt, Opt, Order};
use json::{Json, Object};

use super::{Call, Format};

type Handler<C> = Box<dyn FnMut(&mut C, Call)>;

struct Command<C> {
    usage: String,
    min: usize,
    max: usize,
    handler: Handler<C>,
}

/// What a daemon can be told.  `C` is what handlers work on.
pub struct Commands<C> {
    commands: BTreeMap<String, Command<C>>,
}

impl<C> fmt::Debug for Commands<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.commands.keys()).finish()
    }
}

impl<C> Default for Commands<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> Commands<C> {
    /// No commands but `list-commands` and `set-options`.
    pub fn new() -> Self {
        let mut commands = Self {
            commands: BTreeMap::new(),
        };
        // Dispatch carries these two out: they are about the commands and the connection.
        commands.register("list-commands", "", 0, 0, |_, _| {});
        commands.register("set-options", "[--format text|json]", 1, 2, |_, _| {});
        commands
    }

    /// Adds or replaces the command `name`, which takes from `min` to `max` arguments;
    /// `usage` describes them in `list-commands`.
    pub fn register(
        &mut self,
        name: &str,
        usage: &str,
        min: usize,
        max: usize,
        handler: impl FnMut(&mut C, Call) + 'static,
    ) {
        let command = Command {
            usage: usage.to_owned(),
            min,
            max,
            handler: Box::new(handler),
        };
        self.commands.insert(name.to_owned(), command);
    }

    /// Adds a command that answers at once.
    pub fn answer(
        &mut self,
        name: &str,
        usage: &str,
        min: usize,
        max: usize,
        mut answer: impl FnMut(&mut C, &[String]) -> Result<String, String> + 'static,
    ) {
        self.register(name, usage, min, max, move |context, call| {
            call.responder.finish(answer(context, &call.args));
        });
    }

    /// Carries `call` out, or refuses it.
    pub fn dispatch(&mut self, context: &mut C, call: Call) {
        let name = call.name.as_str();
        let Some(command) = self.commands.get_mut(name) else {
            let text = format!(
                "\"{name}\" is not a valid command \
                 (use \"list-commands\" to see a list of valid commands)"
            );
            return call.responder.error(text);
        };
        let count = call.args.len();
        if count < command.min {
            let min = command.min;
            let text = format!("\"{name}\" command requires at least {min} arguments");
            return call.responder.error(text);
        }
        if count > command.max {
            let max = command.max;
            let text = format!("\"{name}\" command takes at most {max} arguments");
            return call.responder.error(text);
        }
        match name {
            "list-commands" => self.list(call),
            "set-options" => match parse_format(&call.args) {
                Ok(format) => call.responder.set_format(format),
                Err(text) => call.responder.error(text),
            },
            _ => (command.handler)(context, call),
        }
    }

    fn list(&self, call: Call) {
        if call.format == Format::Json {
            let entry = |(name, command): (&String, &Command<C>)| {
                (name.as_str().into(), Json::from(command.usage.as_str()))
            };
            let object: Object = self.commands.iter().map(entry).collect();
            return call.responder.reply_json(object.into());
        }
        let mut text = String::from("The available commands are:\n");
        for (name, command) in &self.commands {
            text += &format!("  {name:<23} {}\n", command.usage);
        }
        call.responder.reply(text);
    }
}

fn parse_format(args: &[String]) -> Result<Format, String> {
    let mut line = vec!["set-options".to_owned()];
    line.extend_from_slice(args);
    let options = [Opt::required("format", None, ())];
    let mut pass = Getopt::new(&line, &options, Order::Permute);
    let mut format = Format::Text;
    while let Some(((), value)) = pass.next().map_err(|e| e.to_string())? {
        format = match value {
            Some("text") => Format::Text,
            Some("json") => Format::Json,
            other => {
                let value = other.unwrap_or_default();
                return Err(format!("option format has invalid value {value}"));
            }
        };
    }
    match pass.into_operands().first() {
        Some(_) => Err("set-options command takes no positional arguments".to_owned()),
        None => Ok(format),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let check = |line: &str, expected: Result<Format, &str>| {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(parse_format(&args), expected.map_err(str::to_owned));
        };
        check("--format json", Ok(Format::Json));
        check("--format=text", Ok(Format::Text));
        check("--format xx", Err("option format has invalid value xx"));
        check("--foo json", Err("unrecognized option '--foo'"));
    }
}
