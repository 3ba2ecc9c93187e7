//! TLS: the certificate and its key, read again when their files change, and the end of the certificate watched. Knows
//! nothing of requests.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::{ArcSwap, ArcSwapOption};
use rustls::ServerConfig;
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

use crate::clock::unix_seconds;

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_secs(2);
/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;
/// Days before its end from which a certificate is told; one that lives for less than four times as long, from the last
/// quarter of its life.
const SOON: u64 = 21;

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

/// When a certificate is good, in seconds since 1970.
#[derive(Debug, Clone, Copy)]
struct Life {
    begins: u64,
    ends: u64,
}

impl Life {
    /// That of a certificate; none where it does not say it as others do.
    fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let read = Certificate::from_der(certificate)
            .inspect_err(
                |error| tracing::debug!(%error, "when the certificate ends cannot be read"),
            )
            .ok()?;
        let validity = read.tbs_certificate().validity();
        Some(Self {
            begins: validity.not_before.to_unix_duration().as_secs(),
            ends: validity.not_after.to_unix_duration().as_secs(),
        })
    }

    /// What is to be said of its end now.
    fn ending(self, now: u64) -> Option<Ending> {
        let Some(left) = self.ends.checked_sub(now) else {
            return Some(Ending::Over);
        };
        let soon = (SOON * DAY).min(self.ends.saturating_sub(self.begins) / 4);
        (left <= soon).then_some(Ending::Soon(left / DAY))
    }
}

/// That a certificate ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It has.
    Over,
    /// It does, in so many whole days.
    Soon(u64),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Over => {
                f.write_str("the TLS certificate has expired, and clients refuse it; renew it")
            }
            Self::Soon(0) => f.write_str("the TLS certificate expires within a day; renew it"),
            Self::Soon(1) => f.write_str("the TLS certificate expires in 1 day; renew it"),
            Self::Soon(days) => {
                write!(f, "the TLS certificate expires in {days} days; renew it")
            }
        }
    }
}

/// What connections get.
#[derive(Debug)]
struct Pair {
    config: Arc<ServerConfig>,
    life: Option<Life>,
}

/// A certificate with its key, as connections get it.
#[derive(Debug)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    pair: ArcSwap<Pair>,
    trouble: ArcSwapOption<String>,
    seen: Mutex<Seen>,
}

impl Tls {
    /// Reads both files, PEM: the certificate with its chain, and its key without a passphrase.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let stamps = [Stamp::of(certificate), Stamp::of(key)];
        let pair = read(certificate, key)?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            pair: ArcSwap::from_pointee(pair),
            trouble: ArcSwapOption::empty(),
            seen: Mutex::new(Seen {
                read: stamps,
                looked: stamps,
            }),
        })
    }

    /// What makes a connection of the bytes of a client, with the pair that is good now.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.pair.load().config.clone())
    }

    /// Why the files as they are now are not what is served, in one line; none when they are.
    pub fn trouble(&self) -> Option<String> {
        self.trouble.load().as_deref().cloned()
    }

    /// That the certificate which is served has expired or soon does, in one line.
    pub fn ending(&self) -> Option<String> {
        self.ends().map(|ending| ending.to_string())
    }

    fn ends(&self) -> Option<Ending> {
        self.pair.load().life?.ending(unix_seconds())
    }

    /// Tells the log that the certificate has expired or soon does.
    fn tell(&self) {
        let certificate = self.certificate.display();
        match self.ends() {
            Some(ending @ Ending::Over) => tracing::error!(%certificate, "{ending}"),
            Some(ending @ Ending::Soon(_)) => tracing::warn!(%certificate, "{ending}"),
            None => {}
        }
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
            Ok(pair) => {
                self.pair.store(Arc::new(pair));
                self.trouble.store(None);
                tracing::info!(certificate = %self.certificate.display(), "the certificate was read again; new connections get it");
                self.tell();
            }
            Err(error) => {
                tracing::error!(%error, "the new certificate cannot be used, so the one before it is served");
                self.trouble.store(Some(Arc::new(format!(
                    "the new certificate cannot be used, so the one before it is served: {error}"
                ))));
            }
        }
    }

    /// Looks at the files every two seconds, and at SIGHUP, and at when the certificate ends now and every day, until it is
    /// told to stop.
    pub async fn keep(self: Arc<Self>, shutdown: CancellationToken) {
        let mut hangups = Hangups::listen();
        let mut daily = tokio::time::interval(Duration::from_hours(24));
        loop {
            let now = tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(LOOK) => false,
                () = hangups.next() => true,
                _ = daily.tick() => {
                    self.tell();
                    continue;
                }
            };
            let tls = self.clone();
            let _ = tokio::task::spawn_blocking(move || tls.look(now)).await;
        }
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Pair, TlsError> {
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
    let life = chain.first().and_then(Life::of);
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
    Ok(Pair {
        config: Arc::new(config),
        life,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_three_weeks_before_and_of_a_short_life_in_its_last_quarter() {
        let begins = 1_700_000_000;
        for (days, left, expected) in [
            (365, 22 * DAY, None),
            (365, 21 * DAY, Some(Ending::Soon(21))),
            (90, 21 * DAY, Some(Ending::Soon(21))),
            (365, DAY - 1, Some(Ending::Soon(0))),
            // it is renewed when a third of its life is left
            (8, 3 * DAY, None),
            (8, DAY, Some(Ending::Soon(1))),
        ] {
            let life = Life {
                begins,
                ends: begins + days * DAY,
            };
            let told = life.ending(life.ends - left);
            assert_eq!(told, expected, "{days} days, {left} s left");
            assert_eq!(life.ending(life.ends + 1), Some(Ending::Over));
        }
    }
}
