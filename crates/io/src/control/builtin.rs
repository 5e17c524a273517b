//! The commands that every daemon has.

use base::Coverage;
use base::log::Logger;

use super::Commands;

/// Registers `version`, `vlog/*` and `coverage/*` for the daemon that `logger` is of.
pub fn register<C>(commands: &mut Commands<C>, logger: &Logger, coverage: &Coverage) {
    let version = crate::daemon::version_text(logger.program());
    commands.answer("version", "", 0, 0, move |_, _| Ok(version.clone()));
    register_log(commands, logger);
    let counters = coverage.clone();
    commands.answer("coverage/show", "", 0, 0, move |_, _| Ok(counters.show()));
    let counters = coverage.clone();
    commands.answer("coverage/read-counter", "COUNTER", 1, 1, move |_, args| {
        let count = counters.read(&args[0]);
        count
            .map(|c| format!("{c}\n"))
            .ok_or_else(|| "No such counter".to_owned())
    });
}

fn register_log<C>(commands: &mut Commands<C>, logger: &Logger) {
    let log = logger.clone();
    let usage = "{spec | PATTERN:destination:pattern}";
    commands.answer("vlog/set", usage, 0, usize::MAX, move |_, args| {
        if args.is_empty() {
            log.set("")?;
        }
        for spec in args {
            log.set(spec)?;
        }
        Ok(String::new())
    });
    let log = logger.clone();
    commands.answer("vlog/list", "", 0, 0, move |_, _| Ok(log.list()));
    let log = logger.clone();
    commands.answer("vlog/list-pattern", "", 0, 0, move |_, _| {
        Ok(log.list_pattern())
    });
    for (name, on) in [
        ("vlog/enable-rate-limit", true),
        ("vlog/disable-rate-limit", false),
    ] {
        let log = logger.clone();
        commands.answer(name, "[module]...", 0, usize::MAX, move |_, args| {
            log.set_rate_limits(args, on).map(|()| String::new())
        });
    }
    let log = logger.clone();
    commands.answer("vlog/reopen", "", 0, 0, move |_, _| {
        log.reopen().map(|()| String::new())
    });
    let log = logger.clone();
    commands.answer("vlog/close", "", 0, 0, move |_, _| {
        log.close_file();
        Ok(String::new())
    });
}

/// Registers `memory/show`, whose text is the usage that `report` gives, sorted by name.
pub fn register_memory<C>(
    commands: &mut Commands<C>,
    mut report: impl FnMut(&mut C) -> Vec<(String, u64)> + 'static,
) {
    commands.answer("memory/show", "", 0, 0, move |context, _| {
        let mut usage = report(context);
        usage.sort();
        let words: Vec<String> = usage.iter().map(|(n, v)| format!("{n}:{v}")).collect();
        Ok(words.join(" ") + "\n")
    });
}
