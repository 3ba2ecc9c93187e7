//! TLS: the certificate and its key, read again when their files change. Knows nothing of requests.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_secs(2);

/// Why a certificate and a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The file is not there or may not be read.
    #[error("{}: {error}; it is named by {setting}", path.display())]
    Unread {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system or the parser says.
        error: String,
    },
    /// The file holds something else.
    #[error("{} holds no {what} in PEM form; it is named by {setting}", path.display())]
    Missing {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What should be there.
        what: &'static str,
    },
    /// Each can be read, and they cannot be used together.
    #[error("{} and {} cannot be used together: {error}", certificate.display(), key.display())]
    Unusable {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// What rustls says.
        error: String,
    },
}

/// When a file was written, how long it is, and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let number = 0;
        Some(Self {
            modified: metadata.modified().ok(),
            length: metadata.len(),
            number,
        })
    }
}

/// Both files; none for one that is not there.
type Stamps = [Option<Stamp>; 2];

/// What is known about the files.
#[derive(Debug)]
struct Seen {
    /// As they were when they were last read.
    read: Stamps,
    /// As they were at the last look.
    looked: Stamps,
}

/// A certificate with its key, as connections get it.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: ArcSwap<ServerConfig>,
    trouble: ArcSwapOption<String>,
    seen: Mutex<Seen>,
}

impl Tls {
    /// Reads both files, PEM: the certificate with its chain, and its key without a passphrase.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let stamps = [Stamp::of(certificate), Stamp::of(key)];
        let config = read(certificate, key)?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config: ArcSwap::from(config),
            trouble: ArcSwapOption::empty(),
            seen: Mutex::new(Seen {
                read: stamps,
                looked: stamps,
            }),
        })
    }

    /// What makes a connection of the bytes of a client, with the pair that is good now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }

    /// Why the files as they are now are not what is served, in one line; none when they are.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.load().as_deref().cloned()
    }

    /// Looks at the files, and reads them when they have changed and rest; `now` reads them whatever they are. A bad pair
    /// changes nothing but [`Tls::trouble`] and the log.
    pub fn look(&self, now: bool) {
        let stamps = [Stamp::of(&self.certificate), Stamp::of(&self.key)];
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            // one of two files may be new already, and a file may be half written
            let rests = seen.looked == stamps;
            seen.looked = stamps;
            if !now && (seen.read == stamps || !rests) {
                return;
            }
            seen.read = stamps;
        }
        match read(&self.certificate, &self.key) {
            Ok(config) => {
                self.config.store(config);
                self.trouble.store(None);
                tracing::info!(certificate = %self.certificate.display(), "the certificate was read again; new connections get it");
            }
            Err(error) => {
                tracing::error!(%error, "the new certificate cannot be used, so the one before it is served");
                self.trouble.store(Some(Arc::new(format!(
                    "the new certificate cannot be used, so the one before it is served: {error}"
                ))));
            }
        }
    }

    /// Looks at the files every two seconds, and at SIGHUP, until it is told to stop.
    pub async fn keep(self: Arc<Self>, shutdown: CancellationToken) {
        let mut hangups = Hangups::listen();
        loop {
            let now = tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(LOOK) => false,
                () = hangups.next() => true,
            };
            let tls = self.clone();
            let _ = tokio::task::spawn_blocking(move || tls.look(now)).await;
        }
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    const CERTIFICATE: &str = "tls.certificate";
    const KEY: &str = "tls.key";
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unread(CERTIFICATE, certificate, "certificate", &error))?;
    if chain.is_empty() {
        return Err(unread(
            CERTIFICATE,
            certificate,
            "certificate",
            &PemError::NoItemsFound,
        ));
    }
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| unread(KEY, key, "private key without a passphrase", &error))?;
    let unusable = |error: rustls::Error| TlsError::Unusable {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        error: match error {
            rustls::Error::InconsistentKeys(_) => {
                "the key is not that of the certificate".to_owned()
            }
            other => other.to_string(),
        },
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn unread(setting: &'static str, path: &Path, what: &'static str, error: &PemError) -> TlsError {
    let path = path.to_owned();
    match error {
        PemError::Io(error) => TlsError::Unread {
            setting,
            path,
            error: error.to_string(),
        },
        PemError::NoItemsFound => TlsError::Missing {
            setting,
            path,
            what,
        },
        // the words of the parser may quote the file
        _ => TlsError::Unread {
            setting,
            path,
            error: "it is no well-formed PEM".to_owned(),
        },
    }
}

/// SIGHUP, where there is one.
struct Hangups {
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl Hangups {
    #[cfg(unix)]
    fn listen() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let signal = signal(SignalKind::hangup())
            .inspect_err(|error| tracing::warn!(%error, "SIGHUP is not listened for"))
            .ok();
        Self { signal }
    }

    #[cfg(not(unix))]
    fn listen() -> Self {
        Self {}
    }

    /// The next one; never, where there is none.
    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
