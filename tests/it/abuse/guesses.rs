//! Clients that show one token after another, none of which anybody has.

use super::*;
use crate::access::Guarded;
use crate::support::soon;

const GUESSER: &str = "203.0.113.7";
const SOMEBODY: &str = "203.0.113.8";
const ME: &str = "/api/v1/access/me";

/// Asks as a client behind a proxy does.
async fn ask(server: &Guarded, path: &str, client: &str, credential: &str) -> Reply {
    let headers = [("X-Forwarded-For", client), ("Authorization", credential)];
    send(server.address, "GET", path, &headers, b"").await
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_tokens_are_slowed_down_and_right_ones_of_the_same_address_are_not() {
    let people = [("reader", &[("reader", "**")][..])];
    let server = Guarded::with(&[], &people, |config| {
        config.network.trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    })
    .await;
    let right = server.bearer("reader");
    let wrong = async |number: usize| {
        let token = format!("Bearer cbk_abcdefgh_{number}");
        ask(&server, ME, GUESSER, &token).await
    };
    for number in 0..21 {
        assert_eq!(wrong(number).await.status, 401, "{number}");
    }
    let slowed = wrong(21).await;
    assert_eq!(slowed.status, 429, "{}", slowed.text());
    let seconds: u64 = slowed.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&seconds), "{seconds}");
    assert!(
        slowed.text().contains("tokens that nobody has"),
        "{}",
        slowed.text()
    );
    // git sends it as a password
    let git = "/library.git/info/refs?service=git-upload-pack";
    let basic = "Basic Z2l0OmNia193cm9uZw==";
    assert_eq!(ask(&server, git, GUESSER, basic).await.status, 429);
    // who shares the address and has a good one, or none, is answered as ever, and so is what nobody needs one for
    assert_eq!(ask(&server, ME, GUESSER, &right).await.status, 200);
    assert_eq!(ask(&server, ME, GUESSER, "").await.status, 401);
    assert_eq!(ask(&server, "/healthz", GUESSER, basic).await.status, 200);
    assert_eq!(ask(&server, ME, SOMEBODY, basic).await.status, 401);
    // and what is said is kept
    soon("its turn", async {
        while wrong(22).await.status != 401 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_token_is_no_guess() {
    let people = [("reader", &[("reader", "**")][..])];
    let server = Guarded::start(&[], &people).await;
    let token = server.token("reader").to_owned();
    let prefix: String = token.chars().take(12).collect();
    let path = format!("/api/v1/access/tokens/{prefix}/revoke");
    let revoked = server.post("root", &path, "{}").await;
    assert_eq!(revoked.status, 200, "{}", revoked.text());
    for _ in 0..30 {
        let reply = server.get("reader", ME).await;
        assert_eq!(reply.status, 401);
        assert!(reply.text().contains("revoked"), "{}", reply.text());
    }
}
