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
        self.tool("ovs-vsctl", args)
    }

    fn client(&self, args: &[&str]) -> Result<String, String> {
        self.tool("ovsdb-client", args)
    }

    /// What one of our tools prints, or says to be wrong.
    fn tool(&self, name: &str, args: &[&str]) -> Result<String, String> {
        let output = run(self.folder(), &ours().tools.join(name), args);
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

#[test]
fn ovsdb_client_finds_the_leader() {
    if !need("ovsdb_client_finds_the_leader", &[Need::DebianOvs]) {
        return;
    }
    let cluster = Cluster::start(&Stack::debian().unwrap());
    let both = "unix:2.sock,unix:1.sock";
    // A follower answers, too, when nothing else is there, or when it is asked for alone.
    for args in [
        &["list-dbs", both][..],
        &["list-dbs", "unix:2.sock"],
        &["list-dbs", "unix:gone.sock,unix:2.sock"],
    ] {
        assert_eq!(cluster.client(args).unwrap(), "Open_vSwitch\n_Server\n");
    }
    let refused = [
        &[
            "dump",
            "unix:2.sock,unix:gone.sock",
            "Open_vSwitch",
            "Bridge",
        ][..],
        &[
            "get-schema-version",
            "unix:gone.sock,unix:2.sock",
            "Open_vSwitch",
        ],
        &[
            "transact",
            "unix:gone.sock,unix:2.sock",
            r#"["Open_vSwitch"]"#,
        ],
        &["query", "unix:gone.sock,unix:2.sock", r#"["Open_vSwitch"]"#],
        &[
            "monitor",
            "unix:2.sock,unix:gone.sock",
            "Open_vSwitch",
            "ALL",
        ],
        &["dump", both, "Other"],
    ];
    for args in refused {
        let error = cluster.client(args).unwrap_err();
        assert_eq!(
            error, "ovsdb-client: no servers were available\n",
            "{args:?}"
        );
    }
    let error = cluster.client(&["dump", both]).unwrap_err();
    let nameless = "ovsdb-client: database name is required with multiple remotes\n";
    assert_eq!(error, nameless);
    // The order is random: whichever comes first, it is the leader that answers.
    for _ in 0..6 {
        let pid = ["transact", both, r#"["Open_vSwitch"]"#];
        assert_eq!(cluster.client(&pid).unwrap(), "[]\n");
        let version = ["get-schema-version", both, "Open_vSwitch"];
        assert!(cluster.client(&version).unwrap().contains('.'));
    }
    let any = ["--no-leader-only", "query", "unix:2.sock,unix:gone.sock"];
    let any = [&any[..], &[r#"["Open_vSwitch"]"#]].concat();
    assert_eq!(cluster.client(&any).unwrap(), "[]\n");
}

#[test]
fn schemas_are_made_such_that_clusters_take_them() {
    if !need(
        "schemas_are_made_such_that_clusters_take_them",
        &[Need::DebianOvs],
    ) {
        return;
    }
    let original = Stack::debian().unwrap();
    let cluster = Cluster::start(&original);
    let schema = original.schema.display().to_string();
    // Some of its columns are ephemeral, which clusters do not have.
    let needs = ["needs-conversion", "unix:1.sock", &schema];
    assert!(cluster.client(&needs).unwrap().ends_with("no\n"));
    cluster
        .client(&["convert", "unix:1.sock", &schema])
        .unwrap();
    assert!(cluster.client(&needs).unwrap().ends_with("no\n"));
}

#[test]
fn a_cluster_is_known_by_its_id() {
    if !need("a_cluster_is_known_by_its_id", &[Need::DebianOvs]) {
        return;
    }
    let cluster = Cluster::start(&Stack::debian().unwrap());
    let id = cluster.tool("ovsdb-tool", &["db-cid", "1.db"]);
    let id = id.or_else(|_| {
        // Ours reads no files of clusters.
        let tool = Stack::debian().unwrap().tools.join("ovsdb-tool");
        let output = run(cluster.folder(), &tool, &["db-cid", "1.db"]);
        String::from_utf8(output.stdout)
    });
    let id = id.unwrap();
    let folder = cluster.folder().display().to_string();
    let servers = |id: &str| format!("cid:{id},unix:{folder}/2.sock,unix:{folder}/1.sock");
    let (own, other) = (
        servers(id.trim()),
        servers("00000000-0000-4000-8000-000000000001"),
    );
    assert!(
        cluster
            .client(&["dump", &own, "Open_vSwitch", "Bridge"])
            .is_ok()
    );
    let error = cluster.client(&["dump", &other, "Open_vSwitch", "Bridge"]);
    let nothing = "ovsdb-client: no servers were available\n";
    assert_eq!(error.unwrap_err(), nothing);
    let vsctl = |servers: &str| {
        let db = format!("--db={servers}");
        cluster.vsctl(&["--no-wait", "-vovsdb_cs:console:info", &db, "init"])
    };
    vsctl(&own).unwrap();
    let error = vsctl(&other).unwrap_err();
    assert!(
        error.contains("server does not have Open_vSwitch database"),
        "{error}"
    );
}
