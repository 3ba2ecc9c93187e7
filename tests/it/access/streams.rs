//! Streams that are open: they end with the credential they were opened with, and show what their actor sees.

use cuebook::access::secret;
use cuebook::store::{GrantRow, PrincipalRow, TokenRow};
use serde_json::{Value, json};

use super::{Guarded, Person};
use crate::support::http::{Events, send};
use crate::support::mcp::MODERN;
use crate::support::soon;

const LEGACY: &str = "2025-11-25";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

const PEOPLE: [Person<'static>; 3] = [
    (
        "duty",
        &[
            ("reader", "prompts/duty/**"),
            ("reader", "resources/duty/**"),
        ],
    ),
    ("all", &[("reader", "**")]),
    ("other", &[("reader", "**")]),
];

fn prompt(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

async fn library() -> Guarded {
    let text = prompt("One.");
    Guarded::start(
        &[
            ("prompts/duty/a.md", &text),
            ("prompts/plan/b.md", &text),
            ("resources/duty/book.md", "One.\n"),
            ("resources/plan/book.md", "One.\n"),
        ],
        &PEOPLE,
    )
    .await
}

impl Guarded {
    /// A legacy session of an actor.
    async fn session(&self, who: &str) -> String {
        let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let reply = self.ask(who, "/mcp", LEGACY, "initialize", params).await;
        reply.header("mcp-session-id").unwrap().to_owned()
    }

    /// A request in a session.
    async fn in_session(&self, who: &str, session: &str, method: &str) -> u16 {
        let bearer = self.bearer(who);
        let headers = [
            ("Authorization", &*bearer),
            ("Content-Type", "application/json"),
            ("Mcp-Session-Id", session),
        ];
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {} });
        send(
            self.address,
            "POST",
            "/mcp",
            &headers,
            body.to_string().as_bytes(),
        )
        .await
        .status
    }

    async fn stream_of(&self, who: &str, session: &str) -> Events {
        let bearer = self.bearer(who);
        let mut headers = vec![("Authorization", &*bearer), ("Accept", "text/event-stream")];
        if !session.is_empty() {
            headers.push(("Mcp-Session-Id", session));
        }
        Events::open(self.address, "GET", "/mcp", &headers, b"").await
    }

    /// A modern listener, acknowledged.
    async fn listener(&self, who: &str, uris: &[&str]) -> Events {
        let bearer = self.bearer(who);
        let headers = [
            ("Authorization", &*bearer),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", MODERN),
            ("Mcp-Method", "subscriptions/listen"),
        ];
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "subscriptions/listen", "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1.0" },
                "io.modelcontextprotocol/clientCapabilities": {}
            },
            "notifications": { "promptsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": uris }
        } })
        .to_string();
        let mut events =
            Events::open(self.address, "POST", "/mcp", &headers, body.as_bytes()).await;
        let first = events.message().await.unwrap();
        let accepted = first["params"]["notifications"]["resourceSubscriptions"].as_array();
        assert_eq!(accepted.map_or(0, Vec::len), uris.len(), "{first}");
        events
    }

    /// What the database says of an actor's token, and the server with it.
    pub(super) async fn with_store<T>(
        &self,
        change: impl AsyncFnOnce(&cuebook::store::Store) -> T,
    ) -> T {
        let running = self.running.as_ref().unwrap();
        let store = running.records.as_ref().unwrap().store().unwrap();
        let changed = change(store).await;
        running.access.reload().await.unwrap();
        changed
    }

    pub(super) fn prefix(&self, who: &str) -> String {
        // cbk_, and eight characters
        self.token(who)[..12].to_owned()
    }
}

/// Every message up to the end.
async fn rest(events: &mut Events) -> Vec<Value> {
    let mut out = Vec::new();
    while let Some(message) = events.message().await {
        out.push(message);
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_told_of_what_its_actor_sees_and_of_nothing_else() {
    let server = library().await;
    let session = server.session("duty").await;
    let mut legacy = server.stream_of("duty", &session).await;
    let mut anonymous = server.stream_of("duty", "").await;
    let mut modern = server
        .listener("duty", &["duty://book", "plan://book", "none://book"])
        .await;
    let mut all = server.listener("all", &["plan://book"]).await;
    // elsewhere: another text, another list of resources, another content of what was asked for
    server
        .publish(&[
            ("prompts/plan/b.md", &prompt("Two.")),
            ("resources/plan/book.md", "Two.\n"),
            ("resources/plan/more.md", "More.\n"),
        ])
        .await;
    assert_eq!(all.notice().await, PROMPTS);
    assert_eq!(all.notice().await, RESOURCES);
    assert_eq!(
        all.notice().await,
        "notifications/resources/updated plan://book"
    );
    // what comes next is of the next publish
    server
        .publish(&[("resources/duty/book.md", "Two.\n")])
        .await;
    assert_eq!(
        modern.notice().await,
        "notifications/resources/updated duty://book"
    );
    server
        .publish(&[("prompts/duty/a.md", &prompt("Two."))])
        .await;
    for events in [&mut legacy, &mut anonymous, &mut modern] {
        assert_eq!(events.notice().await, PROMPTS);
    }
    server
        .publish(&[("resources/duty/more.md", "More.\n")])
        .await;
    for events in [&mut legacy, &mut anonymous, &mut modern] {
        assert_eq!(events.notice().await, RESOURCES);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_follows_the_grants_of_its_actor_at_once() {
    let server = library().await;
    let mut modern = server.listener("duty", &["plan://book"]).await;
    let mut legacy = server.stream_of("duty", "").await;
    let grant = |pattern: &str| GrantRow {
        who: "duty".into(),
        role: "reader".into(),
        pattern: pattern.into(),
        created_at: 0,
        created_by: "test".into(),
    };
    server
        .with_store(async |store| store.put_grant(&grant("prompts/plan/**")).await)
        .await
        .unwrap();
    assert_eq!(modern.notice().await, PROMPTS);
    assert_eq!(legacy.notice().await, PROMPTS);
    server
        .with_store(async |store| store.put_grant(&grant("**")).await)
        .await
        .unwrap();
    assert_eq!(modern.notice().await, PROMPTS);
    assert_eq!(modern.notice().await, RESOURCES);
    assert_eq!(
        modern.notice().await,
        "notifications/resources/updated plan://book"
    );
    // now it sees everything, and is told as all are
    server
        .publish(&[("prompts/plan/b.md", &prompt("Two."))])
        .await;
    assert_eq!(modern.notice().await, PROMPTS);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_the_credential_that_opened_it() {
    let server = library().await;
    let session = server.session("duty").await;
    let mut legacy = server.stream_of("duty", &session).await;
    let mut modern = server.listener("duty", &[]).await;
    let mut other = server.listener("other", &[]).await;
    let now = cuebook::clock::unix_millis();
    let prefix = server.prefix("duty");
    server
        .with_store(async |store| store.revoke_token(&prefix, now).await)
        .await
        .unwrap();
    assert_eq!(rest(&mut legacy).await, Vec::<Value>::new());
    // the request that the listener was is complete
    let last = rest(&mut modern).await;
    assert_eq!(last.len(), 1, "{last:?}");
    assert_eq!(last[0]["result"]["resultType"], "complete", "{last:?}");
    let status = server.in_session("duty", &session, "ping").await;
    assert_eq!(status, 401);
    // an owner who is shut out
    let row = PrincipalRow {
        name: "other".into(),
        kind: "person".into(),
        email: None,
        subject: None,
        password: None,
        disabled: true,
        created_at: 0,
        created_by: "test".into(),
    };
    server
        .publish(&[("prompts/plan/b.md", &prompt("Two."))])
        .await;
    assert_eq!(other.notice().await, PROMPTS);
    server
        .with_store(async |store| store.put_principal(&row).await)
        .await
        .unwrap();
    assert_eq!(rest(&mut other).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_token_expires() {
    let mut server = library().await;
    let at = cuebook::clock::unix_millis() + 1500;
    let token = secret::token().unwrap();
    let row = TokenRow {
        prefix: token.prefix,
        hash: secret::hash(&token.text).to_vec(),
        principal: "duty".into(),
        label: "brief".into(),
        role: None,
        patterns: None,
        created_at: 0,
        created_by: "test".into(),
        expires_at: Some(at),
        revoked_at: None,
        used_at: None,
    };
    server
        .with_store(async |store| store.put_token(&row).await)
        .await
        .unwrap();
    server.tokens.push(("brief".into(), token.text));
    let mut legacy = server.stream_of("brief", "").await;
    let mut modern = server.listener("brief", &[]).await;
    soon("the end of both", async {
        assert_eq!(rest(&mut legacy).await.len(), 0);
        assert_eq!(rest(&mut modern).await.len(), 1);
    })
    .await;
    assert!(cuebook::clock::unix_millis() >= at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_its_actors_alone() {
    let server = library().await;
    let session = server.session("duty").await;
    let ping = |who: &'static str| server.in_session(who, &session, "ping");
    assert_eq!(ping("duty").await, 200);
    for who in ["other", "root"] {
        // as an id that nobody has given out
        assert_eq!(ping(who).await, 404);
        let bearer = server.bearer(who);
        let headers = [("Authorization", &*bearer), ("Mcp-Session-Id", &*session)];
        let ended = send(server.address, "DELETE", "/mcp", &headers, b"").await;
        assert_eq!(ended.status, 404);
        let mut headers = headers.to_vec();
        headers.push(("Accept", "text/event-stream"));
        let stream = send(server.address, "GET", "/mcp", &headers, b"").await;
        assert_eq!(stream.status, 404);
    }
    assert_eq!(ping("duty").await, 200);
}
