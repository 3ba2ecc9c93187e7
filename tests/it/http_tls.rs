//! TLS as clients meet it: certificates made here, real handshakes, files that change under open connections.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use cuebook::http::{Allowed, Entrance, ForwardedHeader, Limits, Proxies, Tls, layers, serve_tls};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::support::http::{raw, send};
use crate::support::process::Server;
use crate::support::{PATIENCE, soon};

/// A certificate for `localhost` and 127.0.0.1, and its key, as PEM.
struct Pair {
    certificate: String,
    key: String,
    der: CertificateDer<'static>,
}

impl Pair {
    fn new() -> Self {
        Self::of(|_| {})
    }

    /// One that expires so many days and a half from now; a negative number is in the past.
    fn ending(days: i64) -> Self {
        let seconds = cuebook::clock::unix_seconds();
        let seconds = seconds.checked_add_signed((days * 24 + 12) * 60 * 60);
        let seconds = seconds.unwrap();
        Self::of(|params| {
            params.not_after = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
        })
    }

    fn of(change: impl FnOnce(&mut rcgen::CertificateParams)) -> Self {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
        }
    }
}

/// The two files.
struct Files(tempfile::TempDir);

impl Files {
    fn new(pair: &Pair) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        files.write(&pair.certificate, &pair.key);
        files
    }

    fn write(&self, certificate: &str, key: &str) {
        std::fs::write(self.certificate(), certificate).unwrap();
        std::fs::write(self.key(), key).unwrap();
    }

    fn certificate(&self) -> PathBuf {
        self.0.path().join("cert.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("key.pem")
    }

    fn load(&self) -> Arc<Tls> {
        Arc::new(Tls::load(&self.certificate(), &self.key()).unwrap())
    }
}

/// A running server; it stops when it is dropped.
struct Started {
    address: SocketAddr,
    cancel: CancellationToken,
}

impl Drop for Started {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

async fn start(tls: Arc<Tls>, limits: Limits) -> Started {
    let router = Router::new().route("/", get(|| async { "ok" }));
    start_with(tls, limits, router).await
}

async fn start_with(tls: Arc<Tls>, limits: Limits, router: Router) -> Started {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        serve_tls(listener, tls, router, &limits, stop, &TaskTracker::new()).await;
    });
    Started { address, cancel }
}

/// A connection of a client that trusts these certificates and nothing else.
async fn connect(
    address: SocketAddr,
    trusted: &[&Pair],
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for pair in trusted {
        roots.add(pair.der.clone()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    let socket = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, socket)
        .await
}

/// The certificate that a connection was given.
fn given(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone()
}

/// One request on a connection that stays open.
async fn ask(stream: &mut TlsStream<TcpStream>) {
    ask_host(stream, "localhost").await;
}

/// The same for a host; the answer.
async fn ask_host(stream: &mut TlsStream<TcpStream>, host: &str) -> String {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    soon("an answer", async {
        while !answer.ends_with("\r\n\r\nok") {
            let mut piece = [0; 1024];
            let length = stream.read(&mut piece).await.unwrap();
            assert!(length > 0, "it has ended: {answer}");
            answer.push_str(std::str::from_utf8(&piece[..length]).unwrap());
        }
    })
    .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

#[tokio::test]
async fn a_client_is_served_and_agrees_on_http_1_1() {
    let pair = Pair::new();
    let files = Files::new(&pair);
    let server = start(files.load(), Limits::default()).await;
    for offered in [&[][..], &["http/1.1"], &["h2", "http/1.1"]] {
        let mut stream = connect(server.address, &[&pair], offered).await.unwrap();
        let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        let expected = (!offered.is_empty()).then(|| b"http/1.1".to_vec());
        assert_eq!(agreed, expected, "{offered:?}");
        ask(&mut stream).await;
        ask(&mut stream).await;
    }
    // one that speaks nothing we do is told so in the handshake
    let refused = connect(server.address, &[&pair], &["h2"])
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("NoApplicationProtocol"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_new_pair_is_served_without_a_restart_and_open_connections_go_on() {
    let (old, new) = (Pair::new(), Pair::new());
    let files = Files::new(&old);
    let tls = files.load();
    let server = start(tls.clone(), Limits::default()).await;
    let mut open = connect(server.address, &[&old, &new], &[]).await.unwrap();
    ask(&mut open).await;
    assert_eq!(given(&open), old.der);

    // nobody calls for it: the files are watched
    let keeping = tokio::spawn(tls.clone().keep(server.cancel.clone()));
    files.write(&new.certificate, &new.key);
    soon("the new certificate", async {
        loop {
            let stream = connect(server.address, &[&old, &new], &[]).await.unwrap();
            if given(&stream) == new.der {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    ask(&mut open).await;
    assert_eq!((given(&open), tls.trouble()), (old.der.clone(), None));
    server.cancel.cancel();
    soon("the end of the watch", keeping).await.unwrap();
}

#[tokio::test]
async fn a_bad_new_pair_keeps_the_old_one_and_says_so() {
    let (old, new) = (Pair::new(), Pair::new());
    let files = Files::new(&old);
    let tls = files.load();
    let server = start(tls.clone(), Limits::default()).await;
    let garbage = "-----BEGIN PRIVATE KEY-----\n!!!!secret!!!!\n-----END PRIVATE KEY-----\n";
    for (certificate, key, said) in [
        (
            &*new.certificate,
            &*old.key,
            "the key is not that of the certificate",
        ),
        ("", &*new.key, "holds no certificate"),
        (
            &*new.certificate,
            "",
            "holds no private key without a passphrase",
        ),
        (&*new.key, &*new.key, "holds no certificate"),
        (&*new.certificate, garbage, "no well-formed PEM"),
    ] {
        files.write(certificate, key);
        tls.look(true);
        let trouble = tls.trouble().unwrap();
        assert!(trouble.contains(said), "{trouble}");
        assert!(
            !trouble.contains("secret!") && trouble.lines().count() == 1,
            "{trouble}"
        );
        let mut stream = connect(server.address, &[&old, &new], &[]).await.unwrap();
        assert_eq!(given(&stream), old.der);
        ask(&mut stream).await;
    }
    std::fs::remove_file(files.key()).unwrap();
    tls.look(true);
    assert!(
        tls.trouble().unwrap().contains("tls.key"),
        "{:?}",
        tls.trouble()
    );

    files.write(&new.certificate, &new.key);
    tls.look(true);
    assert_eq!(tls.trouble(), None);
    let stream = connect(server.address, &[&new], &[]).await.unwrap();
    assert_eq!(given(&stream), new.der);
}

#[test]
fn files_that_are_being_written_are_read_when_they_rest() {
    let (old, new) = (Pair::new(), Pair::new());
    let files = Files::new(&old);
    let tls = files.load();
    tls.look(false);
    // the certificate is there and its key is not yet
    std::fs::write(files.certificate(), &new.certificate).unwrap();
    tls.look(false);
    assert_eq!(tls.trouble(), None);
    files.write(&new.certificate, &new.key);
    tls.look(false);
    tls.look(false);
    assert_eq!(tls.trouble(), None);
    // and one that rests so is told
    std::fs::write(files.key(), &old.key).unwrap();
    tls.look(false);
    assert_eq!(tls.trouble(), None);
    tls.look(false);
    assert!(tls.trouble().is_some());
}

#[tokio::test]
async fn browsers_are_told_to_come_over_tls_where_the_server_speaks_it_under_its_name() {
    let pair = Pair::new();
    let files = Files::new(&pair);
    let entrance = Arc::new(Entrance {
        allowed: Allowed::new(Some("https://prompts.example.com")).unwrap(),
        proxies: Proxies::new(
            vec!["127.0.0.1/32".parse().unwrap()],
            ForwardedHeader::default(),
        ),
        ..Entrance::default()
    });
    let router = layers(Router::new().route("/", get(|| async { "ok" })), entrance);
    let server = start_with(files.load(), Limits::default(), router.clone()).await;
    let mut stream = connect(server.address, &[&pair], &[]).await.unwrap();
    let told = "strict-transport-security: max-age=31536000\r\n";
    let answer = ask_host(&mut stream, "prompts.example.com").await;
    assert!(answer.contains(told), "{answer}");
    // this machine's own name is that of every other program here
    for host in ["localhost:8400", "127.0.0.1", "[::1]"] {
        let answer = ask_host(&mut stream, host).await;
        assert!(!answer.contains("strict-transport"), "{host}: {answer}");
    }
    // nor is a name whose other ports are somebody else's
    let entrance = Arc::new(Entrance {
        allowed: Allowed::new(Some("https://tools.example.com:8443")).unwrap(),
        ..Entrance::default()
    });
    let beside = layers(Router::new().route("/", get(|| async { "ok" })), entrance);
    let beside = start_with(files.load(), Limits::default(), beside).await;
    let mut stream = connect(beside.address, &[&pair], &[]).await.unwrap();
    let answer = ask_host(&mut stream, "tools.example.com:8443").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(!answer.contains("strict-transport"), "{answer}");
    // what a proxy claims is no TLS of this server
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), server.cancel.clone());
    tokio::spawn(async move {
        let (limits, writes) = (Limits::default(), TaskTracker::new());
        cuebook::http::serve(listener, router, &limits, stop, &writes).await;
    });
    let headers = [
        ("Host", "prompts.example.com"),
        ("X-Forwarded-Proto", "https"),
    ];
    let reply = send(address, "GET", "/", &headers, b"").await;
    assert_eq!(
        (reply.status, reply.header("strict-transport-security")),
        (200, None)
    );
}

#[test]
fn a_certificate_that_expires_is_told_until_another_is_there() {
    for (days, told) in [
        (30, None),
        (22, None),
        (20, Some("expires in 20 days")),
        (1, Some("expires in 1 day;")),
        (0, Some("within a day")),
        (-1, Some("has expired")),
    ] {
        let files = Files::new(&Pair::ending(days));
        let tls = files.load();
        let ending = tls.ending();
        assert_eq!(ending.is_some(), told.is_some(), "{days}: {ending:?}");
        if let (Some(ending), Some(told)) = (ending, told) {
            assert!(ending.contains(told), "{days}: {ending}");
        }
        // it is served all the same, and what is renewed says nothing any more
        let new = Pair::new();
        files.write(&new.certificate, &new.key);
        tls.look(true);
        assert_eq!((tls.trouble(), tls.ending()), (None, None));
    }
}

#[tokio::test]
async fn a_server_whose_certificate_expires_says_so_in_its_log_its_health_and_its_page() {
    let (soon_over, new) = (Pair::ending(10), Pair::new());
    let files = Files::new(&soon_over);
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path(), &files);
    let url = format!("https://localhost:{}", server.address.port());
    let read = async |pair: &Pair, path: &str| {
        let asked = client(pair)
            .get(format!("{url}{path}"))
            .header("accept", "text/html");
        let answer = asked.send().await.ok()?;
        answer.text().await.ok()
    };
    let told = "the TLS certificate expires in 10 days";
    until("the log to say it", async || {
        server.log().contains(told).then_some(())
    })
    .await;
    for path in ["/readyz", "/activity"] {
        let text = read(&soon_over, path).await.unwrap();
        assert!(text.contains(told), "{path}: {text}");
    }
    files.write(&Pair::ending(-1).certificate, &soon_over.key);
    server.signal("-HUP");
    let bad = until("the pair that does not fit", async || {
        let ready = read(&soon_over, "/readyz").await?;
        ready
            .contains("the one before it is served")
            .then_some(ready)
    });
    // of the certificate that is served, it is still so
    assert!(bad.await.contains(told));
    files.write(&new.certificate, &new.key);
    server.signal("-HUP");
    let good = until("the new pair", async || read(&new, "/readyz").await);
    assert!(!good.await.contains("certificate"));
    assert_eq!(server.end("-TERM").0, Some(0));
}

/// A client that trusts one certificate and nothing else.
fn client(pair: &Pair) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate = reqwest::Certificate::from_pem(pair.certificate.as_bytes()).unwrap();
    reqwest::Client::builder()
        .tls_certs_only([certificate])
        .no_proxy()
        .build()
        .unwrap()
}

#[tokio::test]
async fn plain_http_to_the_tls_port_is_told_what_to_do() {
    let files = Files::new(&Pair::new());
    let server = start(files.load(), Limits::default()).await;
    for request in [
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}",
    ] {
        let reply = raw(server.address, request.as_bytes()).await;
        assert_eq!(
            (reply.status, reply.header("connection")),
            (400, Some("close"))
        );
        assert!(
            reply.json()["error"].as_str().unwrap().contains("https://"),
            "{reply:?}"
        );
    }
}

#[tokio::test]
async fn a_handshake_that_does_not_come_loses_its_connection_and_delays_nobody() {
    let pair = Pair::new();
    let files = Files::new(&pair);
    let limits = Limits {
        handshake_timeout: Duration::from_millis(500),
        ..Limits::default()
    };
    let server = start(files.load(), limits).await;
    // nothing; a record that says it is long; half a plain request
    let mut stuck = Vec::new();
    for begun in [&b""[..], &[22, 3, 1, 2, 0, 1, 0, 1, 252], b"GET / HT"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(begun).await.unwrap();
        stuck.push(stream);
    }
    let mut served = connect(server.address, &[&pair], &[]).await.unwrap();
    ask(&mut served).await;
    for mut stream in stuck {
        let mut all = Vec::new();
        // the end, or a reset where bytes were left unread
        let _ = soon("the end", stream.read_to_end(&mut all)).await;
        assert!(!all.starts_with(b"HTTP/1.1 200"));
    }
    ask(&mut served).await;
}

fn serve(folder: &std::path::Path, files: &Files) -> Server {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder)
        .env("CUEBOOK_TLS_CERTIFICATE", files.certificate())
        .env("CUEBOOK_TLS_KEY", files.key());
    Server::start(command)
}

#[tokio::test]
async fn a_server_speaks_tls_to_a_browser_and_to_git_and_reads_its_certificate_again_at_sighup() {
    let (old, new) = (Pair::new(), Pair::new());
    let files = Files::new(&old);
    let data = tempfile::tempdir().unwrap();
    let server = serve(data.path(), &files);
    let url = format!("https://localhost:{}", server.address.port());
    assert!(
        server
            .greeting
            .contains(&format!("https://{}/mcp", server.address)),
        "{}",
        server.greeting
    );
    let ready = async |pair: &Pair| -> Option<Value> {
        let answer = client(pair)
            .get(format!("{url}/readyz"))
            .send()
            .await
            .ok()?;
        serde_json::from_slice(&answer.bytes().await.ok()?).ok()
    };
    assert_eq!(ready(&old).await.unwrap()["status"], "ready");
    assert!(ready(&new).await.is_none());

    let clone = data.path().join("clone");
    let cloned = Command::new("git")
        .env("GIT_SSL_CAINFO", files.certificate())
        .args(["clone", "--quiet", &format!("{url}/library.git")])
        .arg(&clone)
        .output()
        .unwrap();
    assert!(
        cloned.status.success(),
        "{}",
        String::from_utf8_lossy(&cloned.stderr)
    );
    assert!(clone.join("prompts").is_dir());

    files.write(&new.certificate, &old.key);
    server.signal("-HUP");
    let degraded = until("the bad pair to be told", async || {
        ready(&old).await.filter(|r| r["status"] == "degraded")
    });
    let message = degraded.await["messages"][0].as_str().unwrap().to_owned();
    assert!(message.contains("the one before it is served"), "{message}");
    assert!(
        server.log().contains("the one before it is served"),
        "{}",
        server.log()
    );

    files.write(&new.certificate, &new.key);
    server.signal("-HUP");
    let good = until("the new pair", async || ready(&new).await);
    assert_eq!(good.await["status"], "ready");
    assert_eq!(server.end("-TERM").0, Some(0));
}

/// Asks again until there is an answer.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let ends = tokio::time::Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(
            tokio::time::Instant::now() < ends,
            "waited in vain for {what}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn a_server_whose_certificate_cannot_be_used_does_not_start() {
    let files = Files::new(&Pair::new());
    let data = tempfile::tempdir().unwrap();
    let run = |certificate: Option<PathBuf>, key: Option<PathBuf>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cuebook"));
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data.path());
        for (name, path) in [
            ("CUEBOOK_TLS_CERTIFICATE", certificate),
            ("CUEBOOK_TLS_KEY", key),
        ] {
            if let Some(path) = path {
                command.env(name, path);
            }
        }
        let output = command.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let error = run(Some(files.certificate()), None);
    assert!(error.contains("tls.key is not; set both"), "{error}");
    let error = run(Some(files.certificate()), Some(files.certificate()));
    assert!(error.contains("holds no private key"), "{error}");
    let error = run(Some(files.0.path().join("nowhere")), Some(files.key()));
    assert!(error.contains("named by tls.certificate"), "{error}");
    assert!(
        !data.path().join("library.git").exists(),
        "nothing was made"
    );
}
