//! `cargo xtask vm`: a script in a small virtual machine whose kernel is Debian's, with the
//! Open vSwitch module and its tunnel ports.
//!
//! The machine sees this one's root file system read-only, with a file system in memory over
//! it, so every program here runs there too and nothing here changes.  What the script leaves
//! in `/out` is kept in a folder here.  There is no network and no disk.

mod archive;
mod image;

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::Clock;
use image::Image;

/// Written by the guest when its script begins.
const STARTED: &str = ".started";
/// Holds the exit status of the guest's script.
const STATUS: &str = ".status";
/// What the script printed.
const LOG: &str = "log";
/// What the kernel printed.
const CONSOLE: &str = "console";

/// How often the machine is looked at.
const TICK: Duration = Duration::from_millis(100);
/// A machine whose processor is emulated reaches the script in a quarter of this.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// A machine and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Processors.
    pub(crate) cpus: u32,
    /// Memory, as QEMU reads it: `2G`.
    pub(crate) memory: String,
    /// How long the script may take.
    pub(crate) limit: Duration,
    /// Folder that the guest has as `/out`.
    pub(crate) out: PathBuf,
    /// The script, for bash.
    pub(crate) script: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
}

/// How a script came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With this status.
    Exit(i32),
    /// The machine stopped before the script was done; true if it had begun.
    Stopped(bool),
    /// It took too long.
    TimedOut,
}

/// Runs what the command line asks for.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    run_job(&parse(args)?)
}

/// Downloads the kernel, if it is not there.
pub(crate) fn fetch_kernel() -> Result<(), String> {
    image::kernel().map(|_| ())
}

impl Job {
    /// A script in a machine of the usual size.
    pub(crate) fn new(script: PathBuf) -> Self {
        Self {
            cpus: 2,
            memory: "2G".to_owned(),
            limit: Duration::from_secs(900),
            out: image::folder().join("out"),
            script,
            args: Vec::new(),
        }
    }
}

/// Where everything of the machine is kept.
pub(crate) fn folder() -> PathBuf {
    image::folder()
}

/// Why there can be no machine here, in one line, or nothing.
pub(crate) fn obstacle() -> Option<String> {
    image::missing_tools()
}

fn parse(args: &[String]) -> Result<Job, String> {
    let mut job = Job::new(PathBuf::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let mut value = || {
            rest.next()
                .ok_or_else(|| format!("vm: {arg} needs a value"))
        };
        let number = |text: &String| {
            let parsed = text.parse::<u32>().ok().filter(|n| *n > 0);
            parsed.ok_or_else(|| format!("vm: {arg}: '{text}' is not a positive number"))
        };
        match arg.as_str() {
            "-c" => job.cpus = number(value()?)?,
            "-m" => job.memory = memory(value()?)?,
            "-t" => job.limit = Duration::from_secs(u64::from(number(value()?)?)),
            "-o" => job.out = value()?.into(),
            option if option.starts_with('-') => {
                return Err(format!("vm: unknown option {option}"));
            }
            script => {
                job.script = script.into();
                job.args = rest.cloned().collect();
                return Ok(job);
            }
        }
    }
    Err("vm: which script?".to_owned())
}

/// An amount of memory: a number of megabytes, or one followed by M or G.
fn memory(text: &str) -> Result<String, String> {
    let digits = text.strip_suffix(['M', 'G']).unwrap_or(text);
    match digits.parse::<u32>() {
        Ok(number) if number > 0 => Ok(text.to_owned()),
        _ => Err(format!(
            "vm: -m: '{text}' is not an amount of memory such as 512M or 2G"
        )),
    }
}

/// Runs a script; what it prints is printed as it comes.
///
/// # Errors
/// Something that is needed is missing, or how the script failed.
pub(crate) fn run_job(job: &Job) -> Result<(), String> {
    let script =
        fs::canonicalize(&job.script).map_err(|e| format!("vm: {}: {e}", job.script.display()))?;
    if let Some(missing) = image::missing_tools() {
        return Err(missing);
    }
    let image = image::prepare()?;
    fs::create_dir_all(&job.out).map_err(|e| format!("vm: {}: {e}", job.out.display()))?;
    let job = Job {
        script,
        out: fs::canonicalize(&job.out).map_err(|e| format!("vm: {e}"))?,
        ..job.clone()
    };
    fs::write(job.out.join(".guest"), guest_script(&job)).map_err(|e| format!("vm: {e}"))?;
    let mut end = End::Stopped(false);
    if can_virtualize() {
        end = attempt(&job, &image, true)?;
    }
    if end == End::Stopped(false) {
        end = attempt(&job, &image, false)?;
    }
    let console = job.out.join(CONSOLE);
    match end {
        End::Exit(0) => Ok(()),
        End::Exit(status) => Err(format!("vm: the script ended with status {status}")),
        End::TimedOut => Err(format!("vm: still running after {} s", job.limit.as_secs())),
        End::Stopped(true) => Err(format!(
            "vm: the machine stopped while the script ran; see {}",
            console.display()
        )),
        End::Stopped(false) => Err(format!(
            "vm: the machine did not reach the script; see {}",
            console.display()
        )),
    }
}

/// Whether the processor's own virtualization is worth a try.
fn can_virtualize() -> bool {
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    let kvm = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm");
    (has("vmx") || has("svm")) && kvm.is_ok()
}

/// What the guest runs as its first process, once the host's files are its root.
fn guest_script(job: &Job) -> String {
    let words: Vec<String> = std::iter::once(job.script.display().to_string())
        .chain(job.args.iter().cloned())
        .map(|word| quote(&word))
        .collect();
    let path = std::env::var("PATH").unwrap_or_default();
    format!(
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{path} HOME=/root\n\
         ip link set lo up\n\
         echo 1 > /proc/sys/kernel/printk\n\
         for m in openvswitch vport-vxlan vport-geneve vport-gre; do modprobe $m; done\n\
         cd /out\n\
         echo > {STARTED}\n\
         bash {script} > {LOG} 2>&1\n\
         echo $? > {STATUS}\n\
         sync\n\
         echo o > /proc/sysrq-trigger\n\
         sleep 60\n",
        path = quote(&path),
        script = words.join(" "),
    )
}

/// A word that the shell reads as it is.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// QEMU for this job.
fn machine(job: &Job, image: &Image, virtualized: bool) -> Command {
    let accelerator: &[&str] = if virtualized {
        &["-accel", "kvm", "-cpu", "host"]
    } else {
        &["-accel", "tcg,thread=multi", "-cpu", "max"]
    };
    let mut command = Command::new("qemu-system-x86_64");
    command
        .args(accelerator)
        .args(["-smp", &job.cpus.to_string(), "-m", &job.memory])
        .args(["-nographic", "-no-reboot", "-nic", "none"])
        .arg("-kernel")
        .arg(&image.kernel)
        .arg("-initrd")
        .arg(&image.initramfs)
        .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off"])
        .args([
            "-fsdev",
            "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap",
            "-device",
            "virtio-9p-pci,fsdev=host,mount_tag=host",
        ])
        .arg("-fsdev")
        .arg(format!(
            "local,id=out,path={},security_model=none",
            job.out.display().to_string().replace(',', ",,")
        ))
        .args(["-device", "virtio-9p-pci,fsdev=out,mount_tag=out"]);
    command
}

/// Boots the machine once and follows the script.
fn attempt(job: &Job, image: &Image, virtualized: bool) -> Result<End, String> {
    for name in [STARTED, STATUS, LOG] {
        // It may be left from the last time.
        let _ = fs::remove_file(job.out.join(name));
    }
    let console = File::create(job.out.join(CONSOLE)).map_err(|e| format!("vm: {CONSOLE}: {e}"))?;
    let errors = console.try_clone().map_err(|e| format!("vm: {e}"))?;
    let mut command = machine(job, image, virtualized);
    command.stdin(Stdio::null()).stdout(console).stderr(errors);
    let child = command
        .spawn()
        .map_err(|e| format!("vm: qemu-system-x86_64: {e}"))?;
    let mut machine = Machine(child);
    let mut log = Follower::new(job.out.join(LOG));
    let clock = Clock::new();
    let begin = clock.real();
    let end = loop {
        let is_over = matches!(machine.0.try_wait(), Ok(Some(_)) | Err(_));
        let started = job.out.join(STARTED).exists();
        log.follow();
        if is_over {
            break status(&job.out).map_or(End::Stopped(started), End::Exit);
        }
        let took = clock.real().since(begin);
        if !started && took > BOOT_LIMIT {
            break End::Stopped(false);
        }
        if took > job.limit + BOOT_LIMIT || (started && took > job.limit) {
            break End::TimedOut;
        }
        std::thread::sleep(TICK);
    };
    log.follow();
    Ok(end)
}

/// What the script's status was, if it came to its end.
fn status(out: &Path) -> Option<i32> {
    fs::read_to_string(out.join(STATUS))
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// A running machine, which goes with this value.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        // It has ended already unless it took too long.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Prints what is added to a file.
struct Follower {
    path: PathBuf,
    file: Option<File>,
}

impl Follower {
    const fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    fn follow(&mut self) {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &mut self.file else { return };
        let mut new = Vec::new();
        if file.read_to_end(&mut new).is_ok() {
            // Whoever stops reading does not want more.
            let _ = std::io::stdout().write_all(&new);
            let _ = std::io::stdout().flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn options_end_at_the_script() {
        let job = parse(&args("-c 4 -m 512M -t 60 x.sh -c a")).unwrap();
        assert_eq!((job.cpus, job.memory.as_str()), (4, "512M"));
        assert_eq!(job.limit, Duration::from_secs(60));
        assert_eq!(job.script, PathBuf::from("x.sh"));
        assert_eq!(job.args, ["-c", "a"]);
    }

    #[test]
    fn bad_options_are_named() {
        for (text, word) in [
            ("-c", "-c"),
            ("-c 0 x", "'0'"),
            ("-t x y", "'x'"),
            ("-m 2T x", "'2T'"),
            ("--what x", "--what"),
            ("", "script"),
        ] {
            let error = parse(&args(text)).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn words_reach_the_guest_as_they_are() {
        assert_eq!(quote("it's a $HOME"), "'it'\\''s a $HOME'");
    }
}
