//! TLS between our own ends.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use io::tls::TlsConfig;
use io::{Listener, Net, Stream};

use crate::streams::{TempDir, until};

fn pki(name: &str) -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pki");
    Some(dir.join(name))
}

fn end(dir: &TempDir, name: &str, ca: &str) -> Net {
    let net = dir.net();
    net.tls().configure(TlsConfig {
        private_key: pki(&format!("{name}-key.pem")),
        certificate: pki(&format!("{name}.pem")),
        ca_cert: pki(ca),
        ..TlsConfig::default()
    });
    net
}

/// Connects, and tells what both sides made of it.
fn meet(client: &Net, server: &Net) -> (std::io::Result<Stream>, std::io::Result<Stream>) {
    let mut listener: Listener = server.listen("pssl:0:127.0.0.1", 0, 0).unwrap();
    let port = listener.port().unwrap();
    let mut near = client
        .connect(&format!("ssl:127.0.0.1:{port}"), 0, 0)
        .unwrap();
    let mut far = None;
    // Both hands are needed for a handshake.
    let mut step = || {
        if far.is_none() {
            far = listener.accept().ok();
        }
        let far_done = far.as_mut().map(Stream::connect);
        let near_done = near.connect();
        match (near_done, far_done) {
            (Ok(()), Some(Ok(()))) => Ok(()),
            (Err(error), _) if error.kind() != std::io::ErrorKind::WouldBlock => Err(error),
            (_, Some(Err(error))) if error.kind() != std::io::ErrorKind::WouldBlock => Err(error),
            _ => Err(std::io::ErrorKind::WouldBlock.into()),
        }
    };
    match until(&mut step) {
        Ok(()) => (Ok(near), far.ok_or_else(|| unreachable!())),
        Err(error) => {
            let other = std::io::Error::from(error.kind());
            (Err(error), Err(other))
        }
    }
}

#[test]
fn both_ends_know_each_other() {
    let dir = TempDir::new("tls");
    let (client, server) = (end(&dir, "client", "ca.pem"), end(&dir, "server", "ca.pem"));
    let (near, far) = meet(&client, &server);
    let (mut near, mut far) = (near.unwrap(), far.unwrap());
    assert_eq!(near.peer_common_name().as_deref(), Some("test server"));
    assert_eq!(far.peer_common_name().as_deref(), Some("test client"));
    // More than fits any buffer goes through in order.
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 % 251) as u8).collect();
    let (mut sent, mut got) = (0, Vec::new());
    let mut buffer = vec![0; 70_000];
    while got.len() < data.len() {
        if let Ok(count) = near.send(&[IoSlice::new(&data[sent..])]) {
            sent += count;
        }
        near.flush().unwrap();
        while let Ok(count) = far.recv(&mut buffer) {
            got.extend_from_slice(&buffer[..count]);
        }
    }
    assert!(got == data);
    drop(near);
    assert_eq!(until(|| far.recv(&mut buffer)).unwrap(), 0);
}

#[test]
fn a_peer_of_another_authority_is_refused() {
    let dir = TempDir::new("tls-other");
    let right = end(&dir, "server", "ca.pem");
    let wrong = end(&dir, "client", "other-ca.pem");
    let text = |result: std::io::Result<Stream>| io::error_text(&result.unwrap_err());
    assert_eq!(text(meet(&wrong, &right).0), "Protocol error");
    assert_eq!(text(meet(&right, &wrong).0), "Protocol error");
}

#[test]
fn renewed_files_count_from_the_next_connection_on() {
    let dir = TempDir::new("renewed");
    let copy = |from: &str, to: &str| {
        let from = pki(from).unwrap();
        // In another file, as one that was renewed within a moment has the time of the old one.
        std::fs::remove_file(dir.0.join(to)).unwrap_or_default();
        std::fs::copy(from, dir.0.join(to)).unwrap();
    };
    copy("server-key.pem", "key.pem");
    copy("server.pem", "cert.pem");
    copy("other-ca.pem", "ca.pem");
    let server = dir.net();
    let file = |name: &str| Some(dir.0.join(name));
    server.tls().configure(TlsConfig {
        private_key: file("key.pem"),
        certificate: file("cert.pem"),
        ca_cert: file("ca.pem"),
        ..TlsConfig::default()
    });
    let client = end(&dir, "client", "ca.pem");
    let refused = |(near, far): (std::io::Result<Stream>, std::io::Result<Stream>)| {
        near.is_err() || far.is_err()
    };
    assert!(refused(meet(&client, &server)));
    copy("ca.pem", "ca.pem");
    let (near, far) = meet(&client, &server);
    assert!(far.is_ok());
    assert_eq!(
        near.unwrap().peer_common_name().as_deref(),
        Some("test server")
    );
    // Key and certificate come one after the other, and the second not at once.
    copy("client-key.pem", "key.pem");
    let (near, _far) = meet(&client, &server);
    assert_eq!(
        near.unwrap().peer_common_name().as_deref(),
        Some("test server")
    );
    std::fs::write(dir.0.join("cert.pem"), "-----BEGIN CERT").unwrap();
    let (near, _far) = meet(&client, &server);
    assert_eq!(
        near.unwrap().peer_common_name().as_deref(),
        Some("test server")
    );
    copy("client.pem", "cert.pem");
    let (near, _far) = meet(&client, &server);
    assert_eq!(
        near.unwrap().peer_common_name().as_deref(),
        Some("test client")
    );
}

#[test]
fn the_authority_is_learnt_once() {
    let dir = TempDir::new("tls-bootstrap");
    let server = end(&dir, "server", "ca.pem");
    let client = dir.net();
    let ca = dir.0.join("ca.pem");
    client.tls().configure(TlsConfig {
        private_key: pki("client-key.pem"),
        certificate: pki("client.pem"),
        ca_cert: Some(ca.clone()),
        bootstrap_ca_cert: true,
        ..TlsConfig::default()
    });
    // The first connection is given up, so that nothing unverified counts.
    meet(&client, &server).0.unwrap_err();
    let learnt = std::fs::read_to_string(&ca).unwrap();
    let known = std::fs::read_to_string(pki("ca.pem").unwrap()).unwrap();
    let body = |text: &str| -> String { text.split_whitespace().collect() };
    assert_eq!(body(&learnt), body(&known));
    meet(&client, &server).0.unwrap();
}

#[test]
fn both_ends_need_a_common_version_and_cipher() {
    let dir = TempDir::new("ciphers");
    let with = |name: &str, change: &dyn Fn(&mut TlsConfig)| {
        let net = end(&dir, name, "ca.pem");
        let mut config = net.tls().config();
        change(&mut config);
        net.tls().configure(config);
        net
    };
    let text = |text: &str| Some(text.to_owned());
    let server = with("server", &|c| {
        c.ciphers = text("DEFAULT:@SECLEVEL=2:!AES256");
        c.ciphersuites = text("TLS_CHACHA20_POLY1305_SHA256");
    });
    let meets = |change: &dyn Fn(&mut TlsConfig)| {
        let (near, far) = meet(&with("client", change), &server);
        near.is_ok() && far.is_ok()
    };
    assert!(meets(&|_| {}));
    assert!(meets(&|c| c.protocols = text("TLSv1.2")));
    assert!(meets(&|c| c.protocols = text("TLSv1.3+")));
    assert!(!meets(&|c| {
        c.protocols = text("TLSv1.3");
        c.ciphersuites = text("TLS_AES_128_GCM_SHA256");
    }));
    assert!(!meets(&|c| {
        c.protocols = text("TLSv1.2");
        c.ciphers = text("AES256");
    }));
    // What cannot be honoured stops the connection before anything is sent.
    let weak = with("client", &|c| c.ciphers = text("RC4-MD5"));
    let error = weak.connect("ssl:127.0.0.1:1", 0, 0).err();
    assert_eq!(error.and_then(|e| e.raw_os_error()), Some(71));
}

#[test]
fn a_listener_waits_for_its_key() {
    let dir = TempDir::new("keyless");
    let server = dir.net();
    let client = end(&dir, "client", "ca.pem");
    let mut listener = server.listen("pssl:0:127.0.0.1", 0, 0).unwrap();
    let remote = format!("ssl:127.0.0.1:{}", listener.port().unwrap());
    let mut refused = client.connect(&remote, 0, 0).unwrap();
    let error = until(|| match listener.accept() {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Err(error),
        other => Ok(other.map(drop)),
    });
    assert!(error.unwrap().is_err());
    assert!(until(|| refused.connect()).is_err());
    let complete = end(&dir, "server", "ca.pem").tls().config();
    server.tls().configure(complete);
    let mut near = client.connect(&remote, 0, 0).unwrap();
    let mut far = None;
    let met = until(|| {
        if far.is_none() {
            far = listener.accept().ok();
        }
        let done = far.as_mut().map(Stream::connect);
        near.connect()?;
        done.unwrap_or_else(|| Err(std::io::ErrorKind::WouldBlock.into()))
    });
    assert!(met.is_ok());
}
