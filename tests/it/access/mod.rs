//! Who may do what, by real requests to a server with access control.

mod api;
mod git;
mod mcp;
mod oauth;
mod oracle;
mod people;
mod review;
mod routes;
mod signin;
mod streams;
mod tokens;
mod walk;

use std::net::SocketAddr;
use std::path::PathBuf;

use cuebook::access::{Grant, Need, Pattern, Permissions, Role, Scope, secret};
use cuebook::config::Config;
use cuebook::server::{Running, Serve, start};
use cuebook::store::{GrantRow, PrincipalRow, Store, TokenRow};
use tempfile::TempDir;

use crate::support::http::{Reply, send};
use crate::support::soon;

/// A server that lets in who it knows. Each actor has a token; it is written to the database before the start.
pub(crate) struct Guarded {
    folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) running: Option<Running>,
    tokens: Vec<(String, String)>,
}

/// An actor: name, and what is granted where.
pub(crate) type Person<'a> = (&'a str, &'a [(&'a str, &'a str)]);

/// One actor for each role, each with it on everything.
pub(crate) const ROLES: [Person<'static>; 5] = [
    ("reader", &[("reader", "**")]),
    ("author", &[("author", "**")]),
    ("reviewer", &[("reviewer", "**")]),
    ("publisher", &[("publisher", "**")]),
    ("admin", &[("admin", "**")]),
];

/// What grants allow.
fn permissions(grants: &[(&str, &str)]) -> Permissions {
    let grants = grants.iter().map(|(role, pattern)| Grant {
        role: Role::parse(role).unwrap(),
        pattern: Pattern::parse(pattern).unwrap(),
    });
    Permissions::new(grants, Scope::default())
}

/// Whether somebody with a credential has what a URL takes.
fn met(need: Need, may: &Permissions) -> bool {
    match need {
        Need::Nothing | Need::Known => true,
        Need::Somewhere(action) => may.may_somewhere(action),
        Need::Everywhere(action) => may.may(action, ""),
    }
}

impl Guarded {
    /// Serves a library of files to these actors, and to an admin called `root` who has written it.
    pub(crate) async fn start(files: &[(&str, &str)], people: &[Person<'_>]) -> Self {
        Self::with(files, people, |_| {}).await
    }

    pub(crate) async fn with(
        files: &[(&str, &str)],
        people: &[Person<'_>],
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags = [
            ("listen", "127.0.0.1:0".into()),
            ("access.enabled", "true".into()),
        ];
        let mut config = Config::load(None, &|_| None, &flags).unwrap();
        config.program = env!("CARGO_BIN_EXE_cuebook").into();
        change(&mut config);
        let data_dir = folder.path().join("data");
        std::fs::create_dir(&data_dir).unwrap();
        let store = Store::open(&data_dir.join("cuebook.db")).await.unwrap();
        let mut tokens = Vec::new();
        let root: Person<'_> = ("root", &[("admin", "**")]);
        for (name, grants) in std::iter::once(&root).chain(people) {
            tokens.push(((*name).to_owned(), enter(&store, name, grants).await));
        }
        store.close().await;
        let what = Serve::DataDir {
            path: data_dir,
            starter: None,
        };
        let running = start(what, &config).await.unwrap();
        let guarded = Self {
            folder,
            address: running.address,
            running: Some(running),
            tokens,
        };
        if !files.is_empty() {
            guarded.publish(files).await;
        }
        guarded
    }

    /// Publishes files as `root`.
    pub(crate) async fn publish(&self, files: &[(&str, &str)]) {
        let ready = self.get("root", "/readyz").await.json();
        let files: serde_json::Map<String, serde_json::Value> = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).into()))
            .collect();
        let body = serde_json::json!({ "base": ready["tip"], "message": "Files", "files": files });
        let reply = self
            .post("root", "/api/v1/changes", &body.to_string())
            .await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    /// Waits until the versions of a prompt are counted.
    pub(crate) async fn counted(&self, prompt: &str) {
        let path = format!("/api/v1/prompts/{prompt}/versions");
        soon("the versions", async {
            while self.get("root", &path).await.status == 503 {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    /// The token of an actor.
    pub(crate) fn token(&self, name: &str) -> &str {
        let found = self.tokens.iter().find(|(known, _)| known == name);
        &found.unwrap_or_else(|| panic!("no actor {name}")).1
    }

    pub(crate) fn bearer(&self, name: &str) -> String {
        format!("Bearer {}", self.token(name))
    }

    /// Asks as the person at this machine does, over the socket of commands.
    pub(crate) async fn local(&self, path: &str, body: &serde_json::Value) -> serde_json::Value {
        let socket = cuebook::socket::find(&self.data_dir(), cuebook::server::COMMANDS).unwrap();
        let stream = tokio::net::UnixStream::connect(socket).await.unwrap();
        let body = body.to_string();
        let reply = crate::support::http::on(stream, "POST", path, body.as_bytes()).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) async fn get(&self, name: &str, path: &str) -> Reply {
        let headers = [("Authorization", &*self.bearer(name))];
        send(self.address, "GET", path, &headers, b"").await
    }

    pub(crate) async fn post(&self, name: &str, path: &str, body: &str) -> Reply {
        let bearer = self.bearer(name);
        let headers = [
            ("Authorization", &*bearer),
            ("Content-Type", "application/json"),
        ];
        send(self.address, "POST", path, &headers, body.as_bytes()).await
    }
}

/// Writes an actor into a database; gives its token.
async fn enter(store: &Store, name: &str, grants: &[(&str, &str)]) -> String {
    let principal = PrincipalRow {
        name: name.into(),
        kind: "person".into(),
        email: None,
        subject: None,
        password: None,
        disabled: false,
        created_at: 0,
        created_by: "test".into(),
    };
    store.put_principal(&principal).await.unwrap();
    for (role, pattern) in grants {
        let grant = GrantRow {
            who: name.into(),
            role: (*role).into(),
            pattern: (*pattern).into(),
            created_at: 0,
            created_by: "test".into(),
        };
        store.put_grant(&grant).await.unwrap();
    }
    let token = secret::token().unwrap();
    let row = TokenRow {
        prefix: token.prefix,
        hash: secret::hash(&token.text).to_vec(),
        principal: name.into(),
        label: "test".into(),
        role: None,
        patterns: None,
        created_at: 0,
        created_by: "test".into(),
        expires_at: None,
        revoked_at: None,
        used_at: None,
    };
    store.put_token(&row).await.unwrap();
    token.text
}
