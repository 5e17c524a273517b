//! Compares the edges between the workspace's crates with `layers.txt`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One line of `layers.txt`.
struct Row {
    layer: u32,
    allowed: BTreeSet<String>,
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// Where cargo puts what it makes.
pub(crate) fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.unwrap_or_else(|| root().join("target"))
}

/// Cargo, as it would run from a shell: what `cargo xtask` put into the environment about
/// its own package would make build scripts run anew.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let own = [
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_CRATE_",
            "CARGO_BIN_",
        ];
        if own.iter().any(|prefix| text.starts_with(prefix)) {
            command.env_remove(&name);
        }
    }
    command.current_dir(root());
    command
}

/// Fails with one line per edge that `layers.txt` does not allow.
pub(crate) fn check() -> Result<(), String> {
    let table = parse(&read(&root().join("layers.txt"))?)?;
    let mut errors = table_errors(&table);
    for (name, dependencies) in actual_edges()? {
        if ["xtask", "testkit", "fuzz-targets"].contains(&name.as_str()) {
            continue;
        }
        let Some(row) = table.get(&name) else {
            errors.push(format!("crate {name} is not in layers.txt"));
            continue;
        };
        for dependency in dependencies.difference(&row.allowed) {
            errors.push(format!(
                "{name} uses {dependency}, which layers.txt does not allow"
            ));
        }
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors.join("\n"))
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn parse(text: &str) -> Result<BTreeMap<String, Row>, String> {
    let mut table = BTreeMap::new();
    for line in text
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        let (head, uses) = line
            .split_once(':')
            .ok_or_else(|| format!("no colon in: {line}"))?;
        let (layer, name) = head
            .split_once(' ')
            .ok_or_else(|| format!("no layer in: {line}"))?;
        let layer = layer.parse().map_err(|e| format!("{line}: {e}"))?;
        let allowed = uses.split_whitespace().map(String::from).collect();
        table.insert(name.to_string(), Row { layer, allowed });
    }
    Ok(table)
}

/// An allowed edge must lead to a lower layer.
fn table_errors(table: &BTreeMap<String, Row>) -> Vec<String> {
    let mut errors = Vec::new();
    for (name, row) in table {
        for used in &row.allowed {
            match table.get(used) {
                None => errors.push(format!("layers.txt: {name} may use unknown {used}")),
                Some(lower) if lower.layer >= row.layer => {
                    errors.push(format!(
                        "layers.txt: {name} may use {used}, which is no lower"
                    ));
                }
                Some(_) => {}
            }
        }
    }
    errors
}

/// Each workspace member with the members it depends on, development dependencies apart.
fn actual_edges() -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let mut manifests = vec![
        root().join("bin/Cargo.toml"),
        root().join("xtask/Cargo.toml"),
    ];
    let crates = root().join("crates");
    for entry in std::fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))? {
        let entry = entry.map_err(|e| e.to_string())?;
        manifests.push(entry.path().join("Cargo.toml"));
    }
    let mut edges = BTreeMap::new();
    for manifest in manifests.iter().filter(|m| m.exists()) {
        let args = [
            "tree",
            "--offline",
            "--depth",
            "1",
            "--prefix",
            "none",
            "-e",
            "normal,build",
        ];
        let output = cargo()
            .args(args)
            .args(["--format", "{p}", "--manifest-path"])
            .arg(manifest)
            .output()
            .map_err(|e| format!("cargo tree: {e}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines = text.lines();
        let Some(name) = lines.next().and_then(|l| l.split(' ').next()) else {
            continue;
        };
        let own_prefix = format!("({}", root().display());
        let uses = lines
            .filter(|l| l.contains(&own_prefix))
            .filter_map(|l| l.split(' ').next().map(String::from))
            .collect();
        edges.insert(name.to_string(), uses);
    }
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_keeps_its_layers() {
        if let Err(errors) = check() {
            panic!("{errors}");
        }
    }

    #[test]
    fn an_edge_to_a_higher_layer_is_refused() {
        let table = parse("0 a: b\n1 b:\n").unwrap();
        assert_eq!(
            table_errors(&table),
            ["layers.txt: a may use b, which is no lower"]
        );
    }
}
