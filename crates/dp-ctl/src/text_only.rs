//! Commands about commands.

use std::fmt::Write as _;

use crate::commands::{COMMANDS, Call, Outcome};
use crate::options::Caller;

/// The tool prints its usage before it comes to this.
pub(crate) fn help(call: &mut Call<'_>) -> Outcome {
    list_commands(call)
}

pub(crate) fn list_commands(call: &mut Call<'_>) -> Outcome {
    let prefix = match call.caller {
        Caller::Control => "dpctl/",
        Caller::Tool => "",
    };
    let mut text = "The available commands are:\n".to_owned();
    for command in COMMANDS {
        if call.caller == Caller::Tool || command.on_control {
            let _ = writeln!(text, "  {prefix}{:<23} {}", command.name, command.usage);
        }
    }
    call.print(text);
    Ok(())
}
