//! A cluster of Open vSwitch's own database servers, and our clients.

use std::path::Path;
use std::process::{Command, Output};

use testkit::{Daemon, Need, Scratch, Stack, eventually, need};

use crate::ours;

/// Two servers of a clustered database, the first of which leads.
struct Cluster {
    scratch: Scratch,
    _servers: Vec<Daemon>,
}

fn run(folder: &Path, program: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
        command.env(name, folder);
    }
    let output = command.current_dir(folder).args(args).output();
    output.unwrap_or_else(|e| panic!("{}: {e}", program.display()))
}

impl Cluster {
    fn start(original: &Stack) -> Self {
        let scratch = Scratch::new();
        let folder = scratch.path();
        let schema = original.schema.display().to_string();
        let tool = original.tools.join("ovsdb-tool");
        for args in [
            &["create-cluster", "1.db", &schema, "unix:1.raft"][..],
            &[
                "join-cluster",
                "2.db",
                "Open_vSwitch",
                "unix:2.raft",
                "unix:1.raft",
            ],
        ] {
            let output = run(folder, &tool, args);
            assert!(output.status.success(), "{output:?}");
        }
        let servers = ["1", "2"].map(|n| {
            let program = original.daemon("ovsdb-server");
            let mut command = Command::new(program);
            command.current_dir(folder).arg(format!("{n}.db"));
            command.arg(format!("--remote=punix:{}/{n}.sock", folder.display()));
            command.arg(format!("--unixctl={}/{n}.ctl", folder.display()));
            command.arg(format!("--log-file={}/{n}.log", folder.display()));
            command.args(["-vconsole:off", "--no-chdir"]);
            for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
                command.env(name, folder);
            }
            Daemon::start(&mut command)
        });
        let cluster = Self {
            _servers: servers.into(),
            scratch,
        };
        // The second is of use once it has joined.
        let client = original.tools.join("ovsdb-client");
        for n in ["1", "2"] {
            let server = format!("unix:{n}.sock");
            let args = ["-t", "20", "wait", &server, "Open_vSwitch", "connected"];
            let joined = || run(cluster.folder(), &client, &args).status.success();
            eventually("connected to the cluster", joined);
        }
        cluster
    }

    fn folder(&self) -> &Path {
        self.scratch.path()
    }

    fn vsctl(&self, args: &[&str]) -> Result<String, String> {
        let output = run(self.folder(), &ours().tools.join("ovs-vsctl"), args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(text(&output.stderr))
        }
    }
}

#[test]
fn clients_find_the_leader() {
    if !need("clients_find_the_leader", &[Need::DebianOvs]) {
        return;
    }
    let cluster = Cluster::start(&Stack::debian().unwrap());
    let in_folder = |n: u8| format!("unix:{}/{n}.sock", cluster.folder().display());
    let (leader, follower) = (
        format!("--db={}", in_folder(1)),
        format!("--db={}", in_folder(2)),
    );
    let both = format!("{follower},{}", in_folder(1));
    cluster
        .vsctl(&["--no-wait", &leader, "init", "--", "add-br", "a"])
        .unwrap();
    let refused = cluster.vsctl(&["-vovsdb_cs:console:info", &follower, "list-br"]);
    let error = refused.unwrap_err();
    assert!(
        error.contains("clustered database server is not cluster leader; trying another server"),
        "{error}"
    );
    assert!(error.contains("database connection failed ()"), "{error}");
    let through = |db: &str| {
        let options = ["--no-wait", "--no-shuffle-remotes", db, "list-br"];
        cluster.vsctl(&options).unwrap()
    };
    assert_eq!(through(&both), "a\n");
    let any = ["--no-leader-only", &follower, "list-br"];
    assert_eq!(cluster.vsctl(&any).unwrap(), "a\n");
}
