//! The configuration of TLS.

use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::io::Errno;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    SupportedCipherSuite,
};

use super::ciphers::{self, Selection};
use super::protocols::versions;
use super::session::TlsSession;
use super::verify::ChainOnly;

/// The files and choices that TLS works with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// Our private key (PEM).
    pub private_key: Option<PathBuf>,
    /// The certificate of that key, and what else belongs to its chain (PEM).
    pub certificate: Option<PathBuf>,
    /// The certificates that peers must be signed by (PEM); `none` checks no peer.
    pub ca_cert: Option<PathBuf>,
    /// If the CA file does not exist, take the CA from the first peer and write it.
    pub bootstrap_ca_cert: bool,
    /// More certificates to send to peers, so that they can bootstrap (PEM).
    pub peer_ca_cert: Option<PathBuf>,
    /// The protocol versions to use, separated by commas; all supported ones if `None`.
    pub protocols: Option<String>,
    /// OpenSSL's list of ciphers for TLS 1.2.
    pub ciphers: Option<String>,
    /// OpenSSL's list of cipher suites for TLS 1.3.
    pub ciphersuites: Option<String>,
    /// The name that servers are told they are wanted as; none if `None`.
    pub server_name: Option<String>,
}

impl TlsConfig {
    fn files(&self) -> [Option<&Path>; 4] {
        [
            self.private_key.as_deref(),
            self.certificate.as_deref(),
            self.ca_cert.as_deref(),
            self.peer_ca_cert.as_deref(),
        ]
    }

    fn checks_peers(&self) -> bool {
        self.ca_cert.as_deref() != Some(Path::new("none"))
    }
}

/// What tells one content of a file from another.
type Stamp = Option<(SystemTime, u64)>;

#[derive(Debug)]
struct Built {
    stamps: [Stamp; 4],
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    bootstrapping: bool,
}

#[derive(Debug, Default)]
struct State {
    config: TlsConfig,
    built: Option<Built>,
}

/// The TLS configuration of a process.  Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Tls(Arc<Mutex<State>>);

impl Tls {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the configuration; it counts for connections made later.
    pub fn configure(&self, config: TlsConfig) {
        let mut state = self.state();
        if state.config != config {
            *state = State {
                config,
                built: None,
            };
        }
    }

    /// The configuration.
    pub fn config(&self) -> TlsConfig {
        self.state().config.clone()
    }

    /// Whether all that TLS needs has been configured; what is missing is logged.
    ///
    /// # Errors
    /// `ENOPROTOOPT` if something is missing.
    pub fn check_configured(&self) -> io::Result<()> {
        let state = self.state();
        let config = &state.config;
        let needed = [
            ("Private key", &config.private_key),
            ("Certificate", &config.certificate),
            ("CA certificate", &config.ca_cert),
        ];
        let mut complete = true;
        for (what, file) in needed {
            if file.is_none() {
                log::error!(target: "stream_ssl", "{what} must be configured to use SSL");
                complete = false;
            }
        }
        if complete {
            Ok(())
        } else {
            Err(Errno::NOPROTOOPT.into())
        }
    }

    /// A session with the server called `host`.
    pub(crate) fn connect_by_name(&self, host: &str) -> io::Result<TlsSession> {
        let bare = host.strip_suffix('.').unwrap_or(host).to_owned();
        self.connect(ServerName::try_from(bare).map_err(|e| unusable(&e))?)
    }

    /// A session with the server at `peer`.
    pub(crate) fn connect(&self, peer: ServerName<'static>) -> io::Result<TlsSession> {
        self.check_configured()?;
        let mut state = self.state();
        let server_name = state.config.server_name.clone();
        let built = state.built()?;
        let name = match &server_name {
            Some(name) => ServerName::try_from(name.clone()).map_err(|e| unusable(&e))?,
            None => peer,
        };
        let connection =
            ClientConnection::new(built.client.clone(), name).map_err(|e| unusable(&e))?;
        let bootstrap = built.bootstrapping.then(|| self.clone());
        Ok(TlsSession::new(connection.into(), bootstrap))
    }

    /// A session with a client that has connected to us.
    pub(crate) fn accept(&self) -> io::Result<TlsSession> {
        self.check_configured()?;
        let mut state = self.state();
        let built = state.built()?;
        let connection = ServerConnection::new(built.server.clone()).map_err(|e| unusable(&e))?;
        Ok(TlsSession::new(connection.into(), None))
    }

    /// Takes the CA certificate from a peer's chain, if that is still to be done, and
    /// writes it to its file.
    pub(super) fn bootstrap(&self, chain: &[CertificateDer<'_>]) -> io::Result<()> {
        let mut state = self.state();
        let Some(path) = state.config.ca_cert.clone() else {
            return Ok(());
        };
        let Some(ca) = chain.last() else {
            log::error!(target: "stream_ssl",
                "could not bootstrap CA cert: no certificate presented by peer");
            return Err(Errno::PROTO.into());
        };
        let anchor = webpki::anchor_from_trusted_cert(ca);
        let issuer = webpki::EndEntityCert::try_from(ca);
        let self_signed = match (&anchor, &issuer) {
            (Ok(anchor), Ok(cert)) => anchor.subject.as_ref() == cert.issuer(),
            // A version 1 certificate can be a trust anchor all the same.
            (Ok(_), Err(_)) => true,
            (Err(_), _) => false,
        };
        if !self_signed {
            let reason = if chain.len() > 1 {
                "the last certificate of the peer is not self-signed"
            } else {
                "only one certificate was received; the peer must send its CA certificate too"
            };
            log::error!(target: "stream_ssl", "could not bootstrap CA cert: {reason}");
            return Err(Errno::PROTO.into());
        }
        let mut options = std::fs::File::options();
        let created = options.write(true).create_new(true).mode(0o444).open(&path);
        if let Err(error) = created.and_then(|mut file| file.write_all(pem(ca).as_bytes())) {
            if error.kind() != io::ErrorKind::AlreadyExists {
                let text = base::errno_text(&error);
                let path = path.display();
                log::error!(target: "stream_ssl",
                    "could not bootstrap CA cert: creating {path} failed: {text}");
                return Err(error);
            }
        } else {
            let path = path.display();
            log::info!(target: "stream_ssl", "successfully bootstrapped CA cert to {path}");
        }
        state.built = None;
        // What was received before the CA was known must not be trusted.
        log::info!(target: "stream_ssl", "killing successful connection to retry using CA cert");
        Err(Errno::PROTO.into())
    }
}

fn pem(certificate: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in certificate.chunks(48) {
        for group in line.chunks(3) {
            let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for i in 0..4 {
                let digit = ALPHABET[(bits >> (18 - 6 * i) & 63) as usize];
                text.push(if i <= group.len() { digit.into() } else { '=' });
            }
        }
        text.push('\n');
    }
    text + "-----END CERTIFICATE-----\n"
}

fn unusable(error: &dyn std::fmt::Display) -> io::Error {
    log::error!(target: "stream_ssl", "TLS cannot be used: {error}");
    Errno::PROTO.into()
}

fn stamp(path: Option<&Path>) -> Stamp {
    let metadata = std::fs::metadata(path?).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read_pem(path: &Path) -> io::Result<Vec<u8>> {
    base::read_regular(path)
        .map_err(|e| unusable(&format!("{}: {}", path.display(), base::errno_text(&e))))
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let text = read_pem(path)?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let read = read.map_err(|e| unusable(&format!("{}: {e}", path.display())))?;
    if read.is_empty() {
        return Err(unusable(&format!(
            "{}: no certificate in it",
            path.display()
        )));
    }
    Ok(read)
}

impl State {
    /// The configurations of the library, built anew if a file has changed.  While files are being
    /// replaced and do not fit each other, what was there before goes on serving.
    fn built(&mut self) -> io::Result<&Built> {
        let stamps = self.config.files().map(stamp);
        let built = match self.built.take() {
            Some(built) if built.stamps == stamps => built,
            before => match (self.build(stamps), before) {
                (Ok(built), _) => built,
                (Err(_), Some(before)) if !before.bootstrapping => before,
                (Err(error), _) => return Err(error),
            },
        };
        Ok(self.built.insert(built))
    }

    fn build(&self, stamps: [Stamp; 4]) -> io::Result<Built> {
        let config = &self.config;
        let versions = versions(config.protocols.as_deref());
        let provider = Arc::new(CryptoProvider {
            cipher_suites: suites(config)?,
            ..ring::default_provider()
        });
        let [key, certificate, ca, _] = config.files();
        let (Some(key), Some(certificate), Some(ca)) = (key, certificate, ca) else {
            return Err(Errno::NOPROTOOPT.into());
        };
        let key = PrivateKeyDer::from_pem_slice(&read_pem(key)?)
            .map_err(|e| unusable(&format!("{}: {e}", key.display())))?;
        let own = certificates(certificate)?;

        let bootstrapping = config.bootstrap_ca_cert && stamps[2].is_none();
        let mut cas = Vec::new();
        if config.checks_peers() && !bootstrapping {
            cas = certificates(ca)?;
        }
        let roots = |cas: &[CertificateDer<'static>]| {
            let mut roots = RootCertStore::empty();
            for ca in cas {
                roots.add(ca.clone()).map_err(|e| unusable(&e))?;
            }
            Ok::<_, io::Error>(roots)
        };
        let verifier = ChainOnly {
            roots: if cas.is_empty() {
                None
            } else {
                Some(roots(&cas)?)
            },
            trusted: cas.clone(),
            provider: provider.clone(),
        };
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|e| unusable(&e))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(own.clone(), key.clone_key())
            .map_err(|e| unusable(&e))?;
        client.resumption = Resumption::disabled();

        let sent = sent_chain(config, own, &cas)?;
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|e| unusable(&e))?;
        let builder = match cas.is_empty() {
            true if config.checks_peers() => {
                // Nobody can be checked before the CA certificate is known.
                builder.with_client_cert_verifier(nobody(&provider)?)
            }
            true => builder.with_no_client_auth(),
            false => {
                let roots = Arc::new(roots(&cas)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|e| unusable(&e))?)
            }
        };
        let mut server = builder
            .with_single_cert(sent, key)
            .map_err(|e| unusable(&e))?;
        // A peer that was revoked must not come back by resuming.
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        Ok(Built {
            stamps,
            client: Arc::new(client),
            server: Arc::new(server),
            bootstrapping,
        })
    }
}

/// A verifier that no client can satisfy.
fn nobody(
    provider: &Arc<CryptoProvider>,
) -> io::Result<Arc<dyn rustls::server::danger::ClientCertVerifier>> {
    // A root store must not be empty: this name has no key that anybody holds.
    let anchor = rustls::pki_types::TrustAnchor {
        subject: b"".as_slice().into(),
        subject_public_key_info: b"".as_slice().into(),
        name_constraints: None,
    };
    let mut roots = RootCertStore::empty();
    roots.roots.push(anchor);
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|e| unusable(&e))
}

/// Our certificate and what a peer that bootstraps needs to see.
fn sent_chain(
    config: &TlsConfig,
    own: Vec<CertificateDer<'static>>,
    cas: &[CertificateDer<'static>],
) -> io::Result<Vec<CertificateDer<'static>>> {
    let issuer = own
        .first()
        .and_then(|cert| webpki::EndEntityCert::try_from(cert).ok())
        .map(|cert| cert.issuer().to_vec());
    let mut sent = own;
    let mut more = match &config.peer_ca_cert {
        Some(path) => certificates(path)?,
        None => Vec::new(),
    };
    let signed_ours = |ca: &&CertificateDer<'static>| {
        let anchor = webpki::anchor_from_trusted_cert(ca);
        anchor.is_ok_and(|a| Some(a.subject.as_ref()) == issuer.as_deref())
    };
    more.extend(cas.iter().find(signed_ours).cloned());
    for certificate in more {
        if !sent.contains(&certificate) {
            sent.push(certificate);
        }
    }
    Ok(sent)
}

/// The cipher suites to use, the preferred ones first.
fn suites(config: &TlsConfig) -> io::Result<Vec<SupportedCipherSuite>> {
    type Read = fn(&str) -> Result<Selection, String>;
    let read = |option: &str, list: &Option<String>, read: Read, all: Vec<_>| {
        let Some(list) = list else {
            return Ok(all);
        };
        let selection = read(list).map_err(|e| unusable(&format!("{option} \"{list}\": {e}")))?;
        for name in selection.missing {
            log::warn!(target: "stream_ssl", "{option}: {name} is not supported and left out");
        }
        Ok::<_, io::Error>(selection.suites)
    };
    let mut suites = read(
        "ciphersuites",
        &config.ciphersuites,
        ciphers::tls13,
        ciphers::all_tls13(),
    )?;
    suites.extend(read(
        "ciphers",
        &config.ciphers,
        ciphers::tls12,
        ciphers::all_tls12(),
    )?);
    Ok(suites)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_as_text() {
        let text = pem(b"Man is distinguished, not only by his reason, but by this.");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1..3],
            [
                "TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5IGJ5IGhpcyByZWFzb24sIGJ1",
                "dCBieSB0aGlzLg==",
            ]
        );
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let tls = Tls::default();
        let error = tls.connect_by_name("host").err();
        assert_eq!(error.unwrap().raw_os_error(), Some(92));
    }
}
