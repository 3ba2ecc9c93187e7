//! Outgoing webhooks, told to a real receiver.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::*;

/// A request as the receiver got it.
struct Got {
    head: String,
    body: Vec<u8>,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Answers requests one after the other with these statuses, the last one for ever; gives its address.
async fn receiver(statuses: &'static [u16]) -> (SocketAddr, mpsc::UnboundedReceiver<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (told, got) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut count = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = Vec::new();
            let mut buffer = [0; 4096];
            let (head, body) = loop {
                let read = stream.read(&mut buffer).await.unwrap();
                bytes.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some(end) = text.find("\r\n\r\n") else {
                    continue;
                };
                let length = text.lines().find_map(|line| {
                    let (key, value) = line.split_once(':')?;
                    key.eq_ignore_ascii_case("content-length")
                        .then(|| value.trim().parse::<usize>().unwrap())
                });
                if bytes.len() >= end + 4 + length.unwrap_or(0) {
                    break (text[..end].to_owned(), bytes[end + 4..].to_vec());
                }
            };
            let status = statuses[count.min(statuses.len() - 1)];
            count += 1;
            let answer =
                format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes()).await;
            if told.send(Got { head, body }).is_err() {
                return;
            }
        }
    });
    (address, got)
}

/// A server with a `config.toml`.
async fn host(toml: &str) -> Host {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    std::fs::write(&file, toml).unwrap();
    let read = Config::load(Some(&file), &|_| None, &[]).unwrap();
    Host::small_with(|config| config.webhooks = read.webhooks).await
}

async fn next(got: &mut mpsc::UnboundedReceiver<Got>) -> Got {
    soon("a message", got.recv()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_is_told_of_what_it_asked_for_and_knows_from_whom() {
    // the first answer is of a server that is down for a moment
    let (address, mut got) = receiver(&[503, 200]).await;
    let host = host(&format!(
        "[[webhook]]\nurl = \"http://{address}/hook?key=x\"\nsecret = \"s3cret\"\nprivate = true\nevents = [\"proposal.opened\", \"proposal.merged\", \"rollback\"]\n"
    ))
    .await;
    let work = host.work("work");
    work.write("prompts/sre/after.md", prompt("Proposed."));
    work.commit("Shorter");
    work.ok(&["push", "origin", "HEAD:refs/for/main"]);
    let first = next(&mut got).await;
    let again = next(&mut got).await;
    assert_eq!(
        first.header("x-cuebook-delivery"),
        again.header("x-cuebook-delivery")
    );
    assert_eq!(first.body, again.body, "the same is tried again");
    assert!(
        again.head.starts_with("POST /hook?key=x "),
        "{}",
        again.head
    );
    let message = again.json();
    assert_eq!(
        (
            &message["event"],
            &message["proposal"],
            &message["title"],
            &message["actor"]
        ),
        (
            &json!("proposal.opened"),
            &json!(1),
            &json!("Shorter"),
            &json!("local")
        )
    );
    assert!(
        message["url"].as_str().unwrap().ends_with("/proposals/1"),
        "{message}"
    );
    let signature = again.header("x-cuebook-signature").unwrap();
    let (time, digits) = signature
        .strip_prefix("t=")
        .unwrap()
        .split_once(",v1=")
        .unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(b"s3cret").unwrap();
    mac.update(format!("{time}.").as_bytes());
    mac.update(&again.body);
    let expected: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    assert_eq!(digits, expected);
    // what it did not ask for it does not hear: the next is the merge
    work.back();
    work.publish(&[("prompts/sre/other.md", &prompt("Other."))]);
    let head = git(&host.bare(), &["rev-parse", "refs/proposals/1/head"]).text;
    let headers = [("Content-Type", "application/json")];
    let body = json!({ "head": head.trim() }).to_string();
    let merged = send(
        host.address,
        "POST",
        "/api/v1/proposals/1/merge",
        &headers,
        body.as_bytes(),
    )
    .await;
    assert_eq!(merged.status, 200, "{}", merged.text());
    assert_eq!(next(&mut got).await.json()["event"], "proposal.merged");
}

#[tokio::test(flavor = "multi_thread")]
async fn slack_gets_a_line_and_what_is_not_taken_is_counted() {
    let (address, mut got) = receiver(&[200, 410]).await;
    let host = host(&format!(
        "[[webhook]]\nurl = \"http://{address}/services/T/B/x\"\nformat = \"slack\"\nprivate = true\nevents = [\"label\", \"proposal.closed\", \"proposal.opened\"]\n"
    ))
    .await;
    let work = host.work("work");
    work.write("prompts/sre/after.md", prompt("Proposed."));
    work.commit("<!channel> look");
    work.ok(&["push", "origin", "HEAD:refs/for/main"]);
    let message = next(&mut got).await;
    let text = message.json()["text"].as_str().unwrap().to_owned();
    assert!(
        text.starts_with("local opened <http://")
            && text.ends_with("|proposal 1>: &lt;!channel&gt; look"),
        "{text}"
    );
    assert_eq!(message.header("x-cuebook-signature"), None);
    let headers = [("Content-Type", "application/json")];
    let closed = send(
        host.address,
        "POST",
        "/api/v1/proposals/1/close",
        &headers,
        b"{}",
    )
    .await;
    assert_eq!(closed.status, 200, "{}", closed.text());
    next(&mut got).await;
    // gone means gone: it is not tried again, and whoever looks sees that it was not told
    soon("the loss to be counted", async {
        loop {
            let ready = host.ready().await;
            if ready["messages"]
                .to_string()
                .contains("1 webhook message was not taken by http://127.0.0.1")
            {
                assert!(
                    !ready.to_string().contains("services"),
                    "the address may be a secret: {ready}"
                );
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
}

#[test]
fn what_cannot_be_a_receiver_is_said_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let check = |toml: &str, words: &str| {
        std::fs::write(&file, format!("[[webhook]]\n{toml}\n")).unwrap();
        let error = Config::load(Some(&file), &|_| None, &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "no `{words}` in {error}");
    };
    check(
        "url = \"http://127.0.0.1/x\"\nsecret = \"s\"",
        "set private = true",
    );
    check(
        "url = \"http://[::1]/x\"\nsecret = \"s\"",
        "set private = true",
    );
    check(
        "url = \"http://localhost/x\"\nsecret = \"s\"",
        "set private = true",
    );
    check(
        "url = \"http://169.254.169.254/x\"\nsecret = \"s\"",
        "set private = true",
    );
    check(
        "url = \"ftp://example.com\"\nsecret = \"s\"",
        "must begin with https://",
    );
    check("url = \"https://example.com\"", "set `secret`");
    check(
        "url = \"https://example.com\"\nsecret = \"s\"\nevents = [\"all\"]",
        "there is no event `all`",
    );
    check(
        "url = \"https://example.com\"\nsecret = \"s\"\nformat = \"xml\"",
        "json or slack",
    );
    check(
        "url = \"https://example.com\"\nsecert = \"s\"",
        "unknown field `secert`",
    );
}
