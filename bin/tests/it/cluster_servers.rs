//! Clusters of our database servers, and of ours and Open vSwitch's together.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use testkit::{Daemon, Need, Scratch, eventually, need, output};

use crate::ours;

const SCHEMA: &str = r#"{"name":"d","version":"1.0.0","tables":{
    "t":{"columns":{"n":{"type":"integer"}},"indexes":[["n"]],"isRoot":true}}}"#;
const LATER: &str = r#"{"name":"d","version":"1.1.0","tables":{
    "t":{"columns":{"n":{"type":"integer"},"more":{"type":"string"}},"indexes":[["n"]],
    "isRoot":true}}}"#;

/// The folder of a cluster, and the servers that run.
struct Cluster {
    folder: Scratch,
    servers: Vec<Option<Daemon>>,
    /// Where servers reach each other.
    addresses: Vec<String>,
    /// Options that all servers have.
    options: Vec<String>,
}

fn our_server() -> std::path::PathBuf {
    ours().daemons.join("ovsdb-server")
}

impl Cluster {
    /// The files of `count` servers on unix sockets.
    fn new(count: usize) -> Self {
        let addresses = (0..count).map(|n| format!("unix:s{n}.raft")).collect();
        Self::with_addresses(addresses, Vec::new())
    }

    /// The files of servers with these addresses.
    fn with_addresses(addresses: Vec<String>, options: Vec<String>) -> Self {
        let mut this = Self {
            folder: Scratch::new(),
            servers: Vec::new(),
            addresses: Vec::new(),
            options,
        };
        std::fs::write(this.folder.file("schema"), SCHEMA).unwrap();
        std::fs::write(this.folder.file("later"), LATER).unwrap();
        let mut addresses = addresses.into_iter();
        let first = addresses.next().expect("an address");
        let create = [
            "--election-timer=500",
            "create-cluster",
            "s0.db",
            "schema",
            &first,
        ];
        this.good("ovsdb-tool", &create);
        this.servers.push(None);
        this.addresses.push(first);
        for address in addresses {
            this.join(address);
        }
        this
    }

    /// The file of one more server.
    fn join(&mut self, address: String) -> usize {
        let number = self.servers.len();
        let file = format!("s{number}.db");
        let mut args = vec!["join-cluster", &file, "d", &address];
        args.extend(self.addresses.iter().map(String::as_str));
        self.good("ovsdb-tool", &args);
        self.servers.push(None);
        self.addresses.push(address);
        number
    }

    fn tool(&self, name: &str, args: &[&str]) -> (bool, String) {
        let mut command = Command::new(ours().tools.join(name));
        command.env("OVS_RUNDIR", self.folder.path());
        let output = output(command.args(args).current_dir(self.folder.path()));
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    fn good(&self, name: &str, args: &[&str]) -> String {
        let (success, text) = self.tool(name, args);
        assert!(success, "{name} {args:?}: {text}");
        text
    }

    /// Starts server `number` of one make, and waits until it is connected to the cluster.
    fn start_of(&mut self, program: &Path, number: usize) {
        // A file that may not grow is an error for it, not its end.
        let mut server = Command::new("/bin/sh");
        server.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
        server.arg(program);
        let file = |name: String| self.folder.file(&name).display().to_string();
        server
            .arg(format!("--unixctl={}", file(format!("s{number}.ctl"))))
            .arg(format!("--remote=punix:{}", file(format!("s{number}"))))
            .arg(format!("--log-file={}", file(format!("s{number}.log"))))
            .args(&self.options)
            .args(["-vconsole:off", "--no-chdir", &format!("s{number}.db")])
            .env("OVS_RUNDIR", self.folder.path())
            .current_dir(self.folder.path());
        self.servers[number] = Some(Daemon::start(&mut server));
    }

    fn start(&mut self, number: usize) {
        self.start_of(&our_server(), number);
    }

    fn wait(&self, number: usize) {
        let server = format!("unix:s{number}");
        eventually("the server is connected", || {
            self.tool("ovsdb-client", &["-t5", "wait", &server, "d", "connected"])
                .0
        });
    }

    fn start_all(&mut self) {
        for number in 0..self.servers.len() {
            self.start(number);
        }
        (0..self.servers.len()).for_each(|number| self.wait(number));
    }

    fn control(&self, number: usize, args: &[&str]) -> (bool, String) {
        let socket = self.folder.file(&format!("s{number}.ctl"));
        let mut all = vec!["-T10", "-t", socket.to_str().unwrap()];
        all.extend(args);
        self.tool("ovs-appctl", &all)
    }

    fn status(&self, number: usize) -> String {
        self.control(number, &["cluster/status", "d"]).1
    }

    /// Ends a server as an administrator does.
    fn stop(&mut self, number: usize) {
        self.control(number, &["exit"]);
        // Dropping waits for its end, too.
        self.servers[number] = None;
    }

    fn insert(&self, number: usize, n: u32) -> (bool, String) {
        let server = format!("unix:s{number}");
        let insert = format!(r#"["d",{{"op":"insert","table":"t","row":{{"n":{n}}}}}]"#);
        self.tool("ovsdb-client", &["-t20", "transact", &server, &insert])
    }

    fn numbers(&self, number: usize) -> Vec<u32> {
        let server = format!("unix:s{number}");
        let select = r#"["d",{"op":"select","table":"t","where":[],"columns":["n"]}]"#;
        let reply = self.good("ovsdb-client", &["-t20", "transact", &server, select]);
        let reply = json::parse(reply.trim().as_bytes()).unwrap();
        let rows = reply
            .as_array()
            .and_then(|results| results[0].get("rows").cloned());
        let rows = rows
            .as_ref()
            .and_then(json::Json::as_array)
            .map(<[_]>::to_vec);
        let number = |row: json::Json| row.get("n").and_then(json::Json::as_integer);
        let numbers = rows.unwrap().into_iter().filter_map(number);
        let mut numbers: Vec<u32> = numbers.map(|n| u32::try_from(n).unwrap()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// All servers have the same, and their files agree.
    fn check(&mut self, expected: &[u32]) {
        for number in 0..self.servers.len() {
            if self.servers[number].is_some() {
                eventually("all servers have all rows", || {
                    self.numbers(number) == expected
                });
            }
        }
        (0..self.servers.len()).for_each(|number| self.stop(number));
        let files: Vec<String> = (0..self.servers.len())
            .map(|n| format!("s{n}.db"))
            .collect();
        let mut args = vec!["check-cluster"];
        args.extend(files.iter().map(String::as_str));
        self.good("ovsdb-tool", &args);
    }
}

#[test]
fn a_cluster_survives_its_leader_and_compaction() {
    let mut cluster = Cluster::new(3);
    cluster.start_all();
    for number in 0..3 {
        let (inserted, text) = cluster.insert(number, number as u32);
        assert!(inserted, "{text}");
    }
    let leader = (0..3).find(|n| cluster.status(*n).contains("Role: leader"));
    let leader = leader.expect("a leader");
    // Killed, not ended.
    cluster.servers[leader] = None;
    let other = (leader + 1) % 3;
    let (inserted, text) = cluster.insert(other, 3);
    assert!(inserted, "{text}");
    for n in 4..30 {
        assert!(cluster.insert(other, n).0);
    }
    // The others forget what the one that is down lacks: it gets a snapshot.
    for number in (0..3).filter(|n| *n != leader) {
        let (done, text) = cluster.control(number, &["ovsdb-server/compact", "d"]);
        assert!(done, "{text}");
    }
    cluster.start(leader);
    cluster.wait(leader);
    let late = cluster.join("unix:late.raft".to_owned());
    cluster.start(late);
    cluster.wait(late);
    assert!(cluster.insert(late, 30).0);
    cluster.check(&(0..31).collect::<Vec<_>>());
}

#[test]
fn a_server_leaves_and_a_schema_changes() {
    let mut cluster = Cluster::new(3);
    cluster.start_all();
    assert!(cluster.insert(1, 7).0);
    let (_, text) = cluster.control(2, &["cluster/leave", "d"]);
    assert_eq!(text, "");
    let wait = ["-t20", "wait", "unix:s2", "d", "removed"];
    cluster.good("ovsdb-client", &wait);
    eventually("the others know", || !cluster.status(0).contains("s2 ("));
    cluster.stop(2);
    let (started, text) = {
        let server = our_server();
        let mut command = Command::new(server);
        command.env("OVS_RUNDIR", cluster.folder.path());
        let output = output(command.arg("s2.db").current_dir(cluster.folder.path()));
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.success(), text)
    };
    assert!(
        !started && text.contains("indicates server has left the cluster"),
        "{text}"
    );
    cluster.good("ovsdb-client", &["-t20", "convert", "unix:s1", "later"]);
    for number in 0..2 {
        let server = format!("unix:s{number}");
        eventually("all have the new schema", || {
            cluster.good("ovsdb-client", &["get-schema-version", &server, "d"]) == "1.1.0\n"
        });
    }
    assert_eq!(
        cluster
            .insert(0, 7)
            .1
            .matches("constraint violation")
            .count(),
        1
    );
    assert!(cluster.insert(0, 8).0);
    cluster.servers.pop();
    cluster.check(&[7, 8]);
}

/// Addresses of a kind on ports that nobody has.
fn free_addresses(kind: &str, count: usize) -> Vec<String> {
    let listeners = (0..count).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let listeners: Vec<_> = listeners.collect();
    let ports = listeners
        .iter()
        .map(|listener| listener.local_addr().unwrap().port());
    ports
        .map(|port| format!("{kind}:127.0.0.1:{port}"))
        .collect()
}

#[test]
fn servers_meet_over_tcp_and_tls() {
    let pki = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/io/tests/pki");
    let pki = |option: &str, name: &str| format!("--{option}={}", pki.join(name).display());
    let options = vec![
        pki("private-key", "server-key.pem"),
        pki("certificate", "server.pem"),
        pki("ca-cert", "ca.pem"),
    ];
    for (kind, options) in [("tcp", Vec::new()), ("ssl", options)] {
        let mut cluster = Cluster::with_addresses(free_addresses(kind, 3), options);
        cluster.start_all();
        for number in 0..3 {
            assert!(cluster.insert(number, number as u32).0, "{kind}");
        }
        let leader = (0..3).find(|n| cluster.status(*n).contains("Role: leader"));
        let leader = leader.expect("a leader");
        cluster.servers[leader] = None;
        assert!(cluster.insert((leader + 1) % 3, 3).0, "{kind}");
        cluster.start(leader);
        cluster.wait(leader);
        cluster.check(&[0, 1, 2, 3]);
    }
}

/// Sets how large files of a process may get, in bytes.
fn limit_files(process: u32, bytes: &str) {
    let args = [
        format!("--pid={process}"),
        format!("--fsize={bytes}:unlimited"),
    ];
    let status = Command::new("prlimit").args(args).status();
    assert!(status.expect("prlimit runs").success());
}

#[test]
fn a_server_whose_disk_is_full_takes_part_again_when_there_is_room() {
    let mut cluster = Cluster::new(3);
    cluster.start_all();
    for (full, first) in [(0, 0), (2, 100)] {
        assert!(cluster.insert(full, first).0);
        let process = cluster.servers[full].as_ref().expect("runs").id();
        let length = std::fs::metadata(cluster.folder.file(&format!("s{full}.db"))).unwrap();
        limit_files(process, &(length.len() + 300).to_string());
        for n in 1..20 {
            let (inserted, text) = cluster.insert(1, first + n);
            assert!(inserted, "{text}");
        }
        assert!(
            cluster.status(full).contains("Status: failed"),
            "{}",
            cluster.status(full)
        );
        let (_, text) = cluster.control(full, &["ovsdb-server/get-db-storage-status", "d"]);
        assert!(text.contains("write failed, to be tried again"), "{text}");
        limit_files(process, "unlimited");
        cluster.wait(full);
        assert!(cluster.insert(full, first + 20).0);
    }
    let expected: Vec<u32> = (0..21).chain(100..121).collect();
    cluster.check(&expected);
}

/// Inserts numbers over and over by way of any server, until `stop`.  Returns those that were
/// told to be there.
fn writer(cluster: &Cluster, first: u32, stop: &Arc<AtomicBool>) -> JoinHandle<Vec<u32>> {
    let stop = Arc::clone(stop);
    let (tool, folder) = (
        ours().tools.join("ovsdb-client"),
        cluster.folder.path().to_owned(),
    );
    std::thread::spawn(move || {
        let mut there = Vec::new();
        let mut n = first;
        while !stop.load(Ordering::Relaxed) {
            let insert = format!(r#"["d",{{"op":"insert","table":"t","row":{{"n":{n}}}}}]"#);
            let mut command = Command::new(&tool);
            command.env("OVS_RUNDIR", &folder).current_dir(&folder);
            command.args(["-t5", "--no-leader-only", "transact"]);
            let reply = output(command.args(["unix:s0,unix:s1,unix:s2", &insert]));
            let text = String::from_utf8_lossy(&reply.stdout).into_owned();
            // One that was not answered may be there: then this says so.
            if text.contains("uuid") || text.contains("constraint violation") {
                there.push(n);
                n += 1;
            }
        }
        there
    })
}

/// Sends a signal to a server's process.
fn signal(cluster: &Cluster, number: usize, signal: &str) {
    let Some(server) = &cluster.servers[number] else {
        return;
    };
    let process = server.id().to_string();
    let status = Command::new("kill").args([signal, &process]).status();
    assert!(status.expect("kill runs").success());
}

/// One thing after another goes wrong while clients write: servers are killed, stand still as if
/// they were cut off, have no room on the disk; logs are compacted.  What clients were told is
/// there in the end.
#[test]
fn a_cluster_under_load_survives_all_kinds_of_faults() {
    if !need(
        "a_cluster_under_load_survives_all_kinds_of_faults",
        &[Need::Full],
    ) {
        return;
    }
    let mut cluster = Cluster::new(3);
    cluster.start_all();
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (1..=3)
        .map(|n| writer(&cluster, n * 1_000_000, &stop))
        .collect();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |range: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % range).unwrap_or(0)
    };
    let pause = |millis| std::thread::sleep(Duration::from_millis(millis));
    for _ in 0..testkit::cases(10) {
        let number = below(3);
        match below(6) {
            0 => {
                signal(&cluster, number, "-KILL");
                cluster.servers[number] = None;
                pause(1000);
                cluster.start(number);
            }
            1 => {
                cluster.stop(number);
                cluster.start(number);
            }
            2 | 3 => {
                // Longer than an election takes.
                signal(&cluster, number, "-STOP");
                pause(3000);
                signal(&cluster, number, "-CONT");
            }
            4 => {
                cluster.control(number, &["ovsdb-server/compact", "d"]);
            }
            _ => {
                let process = cluster.servers[number].as_ref().expect("runs").id();
                let file = cluster.folder.file(&format!("s{number}.db"));
                let length = std::fs::metadata(file).map_or(0, |file| file.len());
                limit_files(process, &(length + 1000).to_string());
                pause(1000);
                limit_files(process, "unlimited");
            }
        }
        cluster.wait(number);
        pause(500);
    }
    stop.store(true, Ordering::Relaxed);
    let told = writers
        .into_iter()
        .map(|writer| writer.join().expect("a writer"));
    let told: Vec<Vec<u32>> = told.collect();
    for told in &told {
        assert!(told.len() > 20, "{} writes", told.len());
    }
    // Of each writer one more may be there, of which it was told nothing.
    let there = cluster.numbers(0);
    for number in told.iter().flatten() {
        assert!(there.binary_search(number).is_ok(), "{number} is lost");
    }
    let count: usize = told.iter().map(Vec::len).sum();
    assert!(there.len() <= count + 3, "{} of {count}", there.len());
    cluster.check(&there);
}

/// Clients write all the time while servers of the one make are replaced by those of the other.
#[test]
fn a_cluster_is_upgraded_server_by_server_and_back() {
    if !need(
        "a_cluster_is_upgraded_server_by_server_and_back",
        &[Need::DebianOvs],
    ) {
        return;
    }
    let theirs = Path::new("/usr/sbin/ovsdb-server").to_owned();
    let mut cluster = Cluster::new(3);
    for number in 0..3 {
        cluster.start_of(&theirs, number);
        cluster.wait(number);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let inserted = Arc::new(AtomicU32::new(0));
    let client = {
        let (stop, inserted) = (Arc::clone(&stop), Arc::clone(&inserted));
        let (tool, folder) = (
            ours().tools.join("ovsdb-client"),
            cluster.folder.path().to_owned(),
        );
        std::thread::spawn(move || {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                let insert = format!(r#"["d",{{"op":"insert","table":"t","row":{{"n":{n}}}}}]"#);
                let mut command = Command::new(&tool);
                command.env("OVS_RUNDIR", &folder);
                command.args(["-t5", "--no-leader-only", "transact"]);
                let command = command.args(["unix:s0,unix:s1,unix:s2", &insert]);
                let reply = output(command.current_dir(&folder));
                let text = String::from_utf8_lossy(&reply.stdout).into_owned();
                // One that was not answered may be there: then this says so.
                if text.contains("uuid") || text.contains("constraint violation") {
                    n += 1;
                    inserted.store(n, Ordering::Relaxed);
                }
            }
            n
        })
    };
    let goes_on = |cluster: &Cluster| {
        let before = inserted.load(Ordering::Relaxed);
        eventually("writes go on", || {
            inserted.load(Ordering::Relaxed) > before + 3
        });
        assert!(cluster.status(0).contains("cluster member"));
    };
    goes_on(&cluster);
    for program in [our_server(), theirs] {
        for number in 0..3 {
            cluster.stop(number);
            cluster.start_of(&program, number);
            cluster.wait(number);
            goes_on(&cluster);
        }
    }
    // A server of ours is sent a snapshot by one of the others, and the other way round.
    let late = cluster.join("unix:late.raft".to_owned());
    cluster.start(late);
    cluster.wait(late);
    stop.store(true, Ordering::Relaxed);
    let count = client.join().expect("the client's thread");
    cluster.check(&(0..count).collect::<Vec<_>>());
    let theirs = Command::new("/usr/bin/ovsdb-tool")
        .args(["check-cluster", "s0.db", "s1.db", "s2.db", "s3.db"])
        .current_dir(cluster.folder.path())
        .status()
        .expect("the program runs");
    assert!(theirs.success());
}
