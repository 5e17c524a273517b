//! Writes the inputs that a target begins with: `corpus TARGET FOLDER`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [target, folder] = &args[..] else {
        eprintln!("usage: corpus TARGET FOLDER");
        return ExitCode::FAILURE;
    };
    let written = fuzz_targets::seeds(target).and_then(|seeds| {
        std::fs::create_dir_all(folder)?;
        seeds
            .iter()
            .try_for_each(|(name, seed)| std::fs::write(Path::new(folder).join(name), seed))
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("corpus: {target}: {error}");
            ExitCode::FAILURE
        }
    }
}
