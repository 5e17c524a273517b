//! What the machine boots: Debian's kernel, and a first file system that puts the host's files
//! in place.  Both are kept below `target/vm`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::Archive;
use crate::layers;

/// Programs that are needed, with Debian's packages that bring them.
const TOOLS: [(&str, &str); 4] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("busybox", "busybox-static"),
    ("modprobe", "kmod"),
    ("dpkg-deb", "dpkg"),
];

/// Modules without which the host's files cannot be seen.
const BOOT_MODULES: [&str; 4] = ["virtio_pci", "9pnet_virtio", "9p", "overlay"];

/// What QEMU is given.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) kernel: PathBuf,
    pub(crate) initramfs: PathBuf,
}

/// A kernel package's files.
#[derive(Debug)]
pub(crate) struct Kernel {
    /// Holds `boot` and `lib/modules`.
    root: PathBuf,
    version: String,
}

/// Where everything of the machine is kept.
pub(crate) fn folder() -> PathBuf {
    layers::target().join("vm")
}

/// Where a program is, looked for as the shell does and in the system's own folders.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path
        .split(':')
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"]);
    let mut candidates = folders.map(|folder| Path::new(folder).join(name));
    candidates.find(|candidate| candidate.is_file())
}

/// Which programs are not here, in one line, or nothing.
pub(crate) fn missing_tools() -> Option<String> {
    if !cfg!(target_arch = "x86_64") {
        return Some("vm: only x86_64 machines are supported".to_owned());
    }
    let missing = TOOLS.iter().filter(|(name, _)| program(name).is_none());
    let (names, packages): (Vec<&str>, Vec<&str>) = missing.copied().unzip();
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "vm: no {} (apt-get install {})",
        names.join(", "),
        packages.join(" ")
    ))
}

/// The kernel whose files are below `root`.
fn installed(root: &Path) -> Option<Kernel> {
    let mut versions: Vec<String> = fs::read_dir(root.join("lib/modules"))
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|version| root.join(format!("boot/vmlinuz-{version}")).is_file())
        .collect();
    versions.sort();
    let version = versions.pop()?;
    Some(Kernel {
        root: root.to_path_buf(),
        version,
    })
}

/// Debian's kernel, downloaded the first time; nothing is installed.
pub(crate) fn kernel() -> Result<Kernel, String> {
    let root = folder().join("kernel");
    if let Some(kernel) = installed(&root) {
        return Ok(kernel);
    }
    let package = kernel_package()?;
    eprintln!("xtask: vm: downloading {package}");
    let scratch = folder().join("kernel.new");
    // It may be left from a download that was interrupted.
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch).map_err(|e| format!("vm: {}: {e}", scratch.display()))?;
    output(
        Command::new("apt-get")
            .args(["download", "-qq", &package])
            .current_dir(&scratch),
    )?;
    let found = fs::read_dir(&scratch).map_err(|e| format!("vm: {e}"))?;
    let file = found
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|e| e == "deb"))
        .ok_or_else(|| format!("vm: apt-get download {package} left no package"))?;
    output(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&scratch))?;
    fs::remove_file(&file).map_err(|e| format!("vm: {e}"))?;
    let kernel = installed(&scratch).ok_or_else(|| format!("vm: {package} holds no kernel"))?;
    output(
        Command::new("depmod")
            .arg("-b")
            .arg(&scratch)
            .arg(&kernel.version),
    )?;
    // What is there is not whole, or it would have been found.
    let _ = fs::remove_dir_all(&root);
    fs::rename(&scratch, &root).map_err(|e| format!("vm: {}: {e}", root.display()))?;
    installed(&root).ok_or_else(|| "vm: the kernel vanished".to_owned())
}

/// The package behind Debian's newest kernel.
fn kernel_package() -> Result<String, String> {
    let text = output(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?;
    let names = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "));
    let mut kernels = names.filter(|name| name.starts_with("linux-image-"));
    let package = kernels.next();
    package
        .map(String::from)
        .ok_or_else(|| "vm: apt knows no kernel linux-image-amd64 (apt-get update)".to_owned())
}

/// Runs a command; what it printed, or what went wrong.
fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|e| format!("vm: {name}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("vm: {name}: {}", error.trim().replace('\n', "; ")))
}

/// What QEMU boots.
pub(crate) fn prepare() -> Result<Image, String> {
    let kernel = kernel()?;
    let initramfs = folder().join("initramfs");
    let image = Image {
        kernel: kernel.root.join(format!("boot/vmlinuz-{}", kernel.version)),
        initramfs: initramfs.clone(),
    };
    // Made anew each time, since it is cheap and depends on where this folder is.
    fs::write(&initramfs, first_files(&kernel)?)
        .map_err(|e| format!("vm: {}: {e}", initramfs.display()))?;
    Ok(image)
}

/// The files of the modules that are needed to boot, each after those that it needs.
fn boot_modules(kernel: &Kernel) -> Result<Vec<PathBuf>, String> {
    let modprobe = program("modprobe").ok_or("vm: no modprobe")?;
    let mut files: Vec<PathBuf> = Vec::new();
    for module in BOOT_MODULES {
        let text = output(Command::new(&modprobe).arg("-d").arg(&kernel.root).args([
            "-S",
            &kernel.version,
            "--show-depends",
            module,
        ]))?;
        let paths = text.lines().filter_map(|line| line.strip_prefix("insmod "));
        for path in paths.map(|path| PathBuf::from(path.trim())) {
            if !files.contains(&path) {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// A module as the kernel loads it: newer packages hold them compressed.
fn module_bytes(path: &Path) -> Result<Vec<u8>, String> {
    let tool = match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(path).map_err(|e| format!("vm: {}: {e}", path.display())),
    };
    let output = Command::new(tool).arg("-dc").arg(path).output();
    let output = output.map_err(|e| format!("vm: {tool}: {e}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("vm: {tool} cannot read {}", path.display()))
    }
}

/// The first file system: busybox, modules, and a script that mounts the host's files.
fn first_files(kernel: &Kernel) -> Result<Vec<u8>, String> {
    let busybox = program("busybox").ok_or("vm: no busybox")?;
    let busybox = fs::read(&busybox).map_err(|e| format!("vm: {}: {e}", busybox.display()))?;
    let mut archive = Archive::default();
    for name in ["bin", "dev", "host", "modules", "new", "proc", "rw", "sys"] {
        archive.folder(name);
    }
    archive.device("dev/console", 5, 1);
    archive.program("bin/busybox", &busybox);
    let files = boot_modules(kernel)?;
    for (n, path) in files.iter().enumerate() {
        archive.program(&format!("modules/{n}.ko"), &module_bytes(path)?);
    }
    let modules = kernel.root.join("lib/modules");
    archive.program("init", init(files.len(), &modules).as_bytes());
    Ok(archive.finish())
}

/// The first process: loads `count` modules and moves into the host's files, where
/// `modules` are those of its kernel.
fn init(count: usize, modules: &Path) -> String {
    let modules = modules.display();
    let mut script = String::from("#!/bin/busybox sh\n");
    let mut line = |text: &str| {
        let _ = writeln!(script, "/bin/busybox {text}");
    };
    line("mount -t proc proc /proc");
    line("mount -t sysfs sys /sys");
    line("mount -t devtmpfs dev /dev");
    for n in 0..count {
        line(&format!("insmod /modules/{n}.ko"));
    }
    let nine = "trans=virtio,version=9p2000.L,msize=512000";
    line(&format!("mount -t 9p -o {nine},ro,cache=loose host /host"));
    line("mount -t tmpfs -o size=80% rw /rw");
    line("mkdir -p /rw/upper /rw/work");
    line("mount -t overlay -o lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work root /new");
    line("mkdir -p /new/proc /new/sys /new/dev /new/out /new/run /new/lib/modules");
    for name in ["proc", "sys", "dev"] {
        line(&format!("mount -o move /{name} /new/{name}"));
    }
    line("mkdir -p /new/dev/pts /new/dev/shm");
    line("mount -t devpts pts /new/dev/pts");
    line("mount -t tmpfs shm /new/dev/shm");
    line("mount -t tmpfs run /new/run");
    line(&format!("mount --bind '/new{modules}' /new/lib/modules"));
    line(&format!("mount -t 9p -o {nine} out /new/out"));
    script.push_str("exec /bin/busybox chroot /new /bin/bash /out/.guest\n");
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_found_by_its_files() {
        let scratch = testkit::Scratch::new();
        let root = scratch.path();
        assert!(installed(root).is_none());
        for folder in ["boot", "lib/modules/6.1.0-1", "lib/modules/6.1.0-9"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        assert!(installed(root).is_none());
        fs::write(root.join("boot/vmlinuz-6.1.0-1"), b"").unwrap();
        assert_eq!(installed(root).unwrap().version, "6.1.0-1");
    }

    #[test]
    fn the_first_process_is_a_script_of_busybox_alone() {
        let script = init(3, Path::new("/somewhere/lib/modules"));
        assert!(script.starts_with("#!/bin/busybox sh\n"));
        assert!(script.contains("insmod /modules/2.ko"));
        let plain =
            |l: &&str| !l.starts_with("/bin/busybox ") && !l.starts_with("exec /bin/busybox ");
        assert_eq!(script.lines().skip(1).find(plain), None);
    }
}
