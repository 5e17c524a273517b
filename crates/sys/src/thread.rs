//! Threads: where they run and how many files the process may open.

use std::io;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this thread may run on, by number.
///
/// # Errors
/// Those of `sched_getaffinity`.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect())
}

/// One more than the highest number that a CPU of this machine may ever have: numbers have gaps, and
/// CPUs come and go.
///
/// # Errors
/// `/sys` is not there or says nothing that can be read.
pub fn possible_cpus() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    last_cpu(&text).map(|last| last + 1).ok_or_else(|| {
        let text = format!("CPU list '{}' cannot be read", text.trim());
        io::Error::new(io::ErrorKind::InvalidData, text)
    })
}

/// The highest number in a list such as `0-3,8`.
fn last_cpu(text: &str) -> Option<usize> {
    let numbers = text.trim().split([',', '-']).map(str::parse::<usize>);
    numbers
        .collect::<Result<Vec<_>, _>>()
        .ok()?
        .into_iter()
        .max()
}

/// Lets this thread run on `cpus` only.
///
/// # Errors
/// None of them exists or may be used.
pub fn pin(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().filter(|cpu| **cpu < CpuSet::MAX_CPU) {
        set.set(*cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Lets the process open as many files as its hard limit allows.  Returns that limit.
///
/// # Errors
/// Those of `setrlimit`.
pub fn raise_file_limit() -> io::Result<Option<u64>> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        setrlimit(Resource::Nofile, limit)?;
    }
    Ok(limit.maximum)
}

/// Lets the process open `files` files at most, within its hard limit.  Returns what it was.
///
/// # Errors
/// Those of `setrlimit`.
pub fn limit_files(files: u64) -> io::Result<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current.unwrap_or(u64::MAX);
    limit.current = Some(files);
    setrlimit(Resource::Nofile, limit)?;
    Ok(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_cpu_of_a_list() {
        assert_eq!(last_cpu("0-3,8\n"), Some(8));
        assert_eq!(last_cpu("0"), Some(0));
        assert_eq!(last_cpu(""), None);
        assert!(possible_cpus().unwrap() >= allowed_cpus().unwrap().len());
    }

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let cpus = allowed_cpus().unwrap();
        let thread = std::thread::spawn(move || {
            pin(&cpus[..1]).unwrap();
            (allowed_cpus().unwrap(), cpus[0])
        });
        let (allowed, first) = thread.join().unwrap();
        assert_eq!(allowed, [first]);
    }
}
