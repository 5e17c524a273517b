//! OVN, which others wrote, on our database server: its central part builds the same southbound
//! database there as on the original's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use testkit::{Daemon, Need, Scratch, Stack, eventually, need, ovn_programs};

use crate::ours;

/// Switches, and ports of each.
const SWITCHES: usize = 200;
const PORTS: usize = 10;

/// OVN's central part on the servers of one make.
struct Central {
    folder: PathBuf,
    _daemons: Vec<Daemon>,
    _scratch: Scratch,
}

impl Central {
    fn start(stack: &Stack) -> Self {
        let scratch = Scratch::new();
        let folder = scratch.path().to_path_buf();
        let mut daemons = Vec::new();
        let schemas = ovn_programs().join("share/ovn");
        for (short, long) in [("nb", "ovnnb_db"), ("sb", "ovnsb_db")] {
            let file = folder.join(format!("{short}.db"));
            let mut create = Command::new(stack.tools.join("ovsdb-tool"));
            let schema = schemas.join(format!("ovn-{short}.ovsschema"));
            create.arg("create").arg(&file).arg(schema);
            testkit::output(&mut create);
            let socket = folder.join(format!("{long}.sock"));
            let mut server = Command::new(stack.daemon("ovsdb-server"));
            server
                .arg(&file)
                .arg(format!("--remote=punix:{}", socket.display()))
                .arg(format!("--unixctl={short}.ctl"))
                .arg("-vconsole:off");
            daemons.push(Daemon::start(environment(&mut server, &folder)));
            eventually("the server listens", || socket.exists());
        }
        let mut northd = Command::new(ovn_programs().join("bin/ovn-northd"));
        northd
            .args(["-vconsole:off", "--unixctl=northd.ctl"])
            .arg(format!("--ovnnb-db={}", remote(&folder, "nb")))
            .arg(format!("--ovnsb-db={}", remote(&folder, "sb")));
        daemons.push(Daemon::start(environment(&mut northd, &folder)));
        Self {
            folder,
            _daemons: daemons,
            _scratch: scratch,
        }
    }

    /// What `ovn-nbctl` or `ovn-sbctl` prints.
    fn ctl(&self, which: &str, args: &[String]) -> String {
        let mut command = Command::new(ovn_programs().join(format!("bin/ovn-{which}ctl")));
        command
            .arg(format!("--db={}", remote(&self.folder, which)))
            .arg("--timeout=120")
            .args(args);
        let output = testkit::output(environment(&mut command, &self.folder));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn build(&self) {
        self.ctl("nb", &words("lr-add r0"));
        for switch in 0..SWITCHES {
            let mut args = words(&format!(
                "ls-add s{switch} \
                 -- lrp-add r0 r0-s{switch} 00:00:01:00:00:{switch:02x} 10.{switch}.0.1/16 \
                 -- lsp-add s{switch} s{switch}-r0 -- lsp-set-type s{switch}-r0 router \
                 -- lsp-set-addresses s{switch}-r0 router \
                 -- lsp-set-options s{switch}-r0 router-port=r0-s{switch}"
            ));
            for port in 0..PORTS {
                let mac = format!("02:00:00:00:{switch:02x}:{port:02x}");
                let name = format!("s{switch}-p{port}");
                args.extend(words(&format!(
                    "-- lsp-add s{switch} {name} -- lsp-set-port-security {name} {mac} \
                     -- lsp-set-addresses {name}"
                )));
                args.push(format!("{mac} 10.{switch}.0.{}", port + 2));
            }
            self.ctl("nb", &args);
        }
        let drop = [
            "acl-add",
            "s1",
            "to-lport",
            "200",
            "tcp && tcp.dst == 80",
            "drop",
        ];
        self.ctl("nb", &drop.map(str::to_owned));
        self.ctl("nb", &words("--wait=sb sync"));
    }

    /// What the tools say, sorted and without UUIDs.
    fn told(&self) -> BTreeMap<&'static str, Vec<String>> {
        let questions = [
            ("nb", "show"),
            (
                "nb",
                "--bare --columns=name,addresses,up,type,options list Logical_Switch_Port",
            ),
            ("nb", "acl-list s1"),
            ("sb", "lflow-list"),
            (
                "sb",
                "--bare --columns=logical_port,type,mac list Port_Binding",
            ),
            ("sb", "--bare --columns=tunnel_key list Datapath_Binding"),
        ];
        let told = questions.map(|(which, question)| {
            let text = self.ctl(which, &words(question));
            let mut lines: Vec<String> = text.lines().map(without_uuids).collect();
            lines.sort();
            (question, lines)
        });
        told.into_iter().collect()
    }
}

fn remote(folder: &Path, which: &str) -> String {
    format!(
        "unix:{}",
        folder.join(format!("ovn{which}_db.sock")).display()
    )
}

fn environment<'c>(command: &'c mut Command, folder: &Path) -> &'c mut Command {
    let variables = ["OVS_RUNDIR", "OVS_LOGDIR", "OVN_RUNDIR", "OVN_LOGDIR"];
    command.envs(variables.map(|name| (name, folder)))
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The line with each UUID replaced.
fn without_uuids(line: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_hexdigit()) {
        out += &rest[..start];
        let end = rest[start..].find(|c| !is_part(c));
        let (word, after) = rest[start..].split_at(end.unwrap_or(rest.len() - start));
        let is_uuid = word.len() == 36 && word.matches('-').count() == 4;
        out += if is_uuid { "<uuid>" } else { word };
        rest = after;
    }
    out + rest
}

#[test]
fn ovn_builds_the_same_on_both_makes() {
    let needs = [Need::Full, Need::DebianOvs, Need::Ovn];
    if !need("ovn_builds_the_same_on_both_makes", &needs) {
        return;
    }
    let makes = [ours(), Stack::debian().unwrap()];
    let [own, other] = makes.map(|stack| {
        let central = Central::start(&stack);
        central.build();
        // What northd writes after it has told that it is done.
        std::thread::sleep(Duration::from_millis(200));
        central.told()
    });
    assert!(own["lflow-list"].len() > 100 * SWITCHES);
    for (question, lines) in &own {
        assert!(*lines == other[question], "{question}");
    }
}
