//! Access tokens of an OpenID provider: good ones are let in as far as their scopes go, forged ones are not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::{Guarded, ROLES};
use crate::support::http::{Reply, send};

const FILES: &[(&str, &str)] = &[(
    "prompts/sre/triage.md",
    "---\ndescription: Triage\n---\nLook.\n",
)];

/// A key of the provider.
struct Key {
    id: &'static str,
    pair: rcgen::KeyPair,
}

impl Key {
    fn new(id: &'static str) -> Self {
        Self {
            id,
            pair: rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap(),
        }
    }

    /// The public half as a JSON Web Key.
    fn jwk(&self) -> Value {
        // an uncompressed point: 4, x, y
        let point = self.pair.public_key_raw();
        let coordinate = |from: usize| URL_SAFE_NO_PAD.encode(&point[from..from + 32]);
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": coordinate(1), "y": coordinate(33),
        })
    }

    fn sign(&self, claims: &Value, kid: Option<&str>) -> String {
        let mut header = Header::new(Algorithm::ES256);
        header.kid = kid.map(str::to_owned);
        let der = self.pair.serialize_der();
        let key = EncodingKey::from_ec_der(&der);
        jsonwebtoken::encode(&header, claims, &key).unwrap()
    }
}

#[derive(Clone)]
struct Published {
    issuer: String,
    keys: Arc<Mutex<Vec<Value>>>,
    read: Arc<AtomicUsize>,
}

/// A provider: its metadata and its keys, on a port of this machine.
struct Provider {
    published: Published,
    key: Key,
}

impl Provider {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let key = Key::new("one");
        let published = Published {
            issuer,
            keys: Arc::new(Mutex::new(vec![key.jwk()])),
            read: Arc::default(),
        };
        let router = Router::new()
            .route(
                "/.well-known/openid-configuration",
                get(|State(p): State<Published>| async move {
                    json!({ "issuer": p.issuer, "jwks_uri": format!("{}/keys", p.issuer) })
                        .to_string()
                }),
            )
            .route(
                "/keys",
                get(|State(p): State<Published>| async move {
                    p.read.fetch_add(1, Ordering::SeqCst);
                    let keys = p.keys.lock().unwrap().clone();
                    json!({ "keys": keys }).to_string()
                }),
            )
            .with_state(published.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { published, key }
    }

    /// The claims of a good token.
    fn claims(&self, scope: &str) -> Value {
        let now = jsonwebtoken::get_current_timestamp();
        json!({
            "iss": self.published.issuer, "aud": "https://prompts.example.com/mcp", "sub": "user-7",
            "preferred_username": "mina", "groups": ["sre"], "scope": scope, "iat": now, "exp": now + 300,
        })
    }
}

async fn guarded(provider: &Provider) -> Guarded {
    let issuer = provider.published.issuer.clone();
    Guarded::with(FILES, &ROLES, |config| {
        config.access.oauth_issuer = Some(issuer);
        config.access.oauth_audience = Some("https://prompts.example.com/mcp".into());
    })
    .await
}

async fn ask(server: &Guarded, path: &str, token: &str) -> Reply {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", &*bearer)];
    send(server.address, "GET", path, &headers, b"").await
}

const ME: &str = "/api/v1/access/me";

#[tokio::test(flavor = "multi_thread")]
async fn a_good_token_is_somebody_with_the_groups_and_the_scope_it_says() {
    let provider = Provider::start().await;
    let server = guarded(&provider).await;
    let token = provider
        .key
        .sign(&provider.claims("openid cuebook:read"), Some("one"));
    let me = ask(&server, ME, &token).await;
    assert_eq!(me.status, 200, "{}", me.text());
    let me = me.json();
    assert_eq!(
        (&me["name"], &me["groups"]),
        (&json!("mina"), &json!(["sre"]))
    );
    assert_eq!(me["grants"], json!([]), "nothing is given at the first use");
    assert_eq!(ask(&server, "/api/v1/search?q=x", &token).await.status, 403);
    let grant = json!({ "who": "group:sre", "role": "admin" }).to_string();
    server.post("root", "/api/v1/access/grants", &grant).await;
    assert_eq!(ask(&server, "/api/v1/search?q=x", &token).await.status, 200);
    // the scope is what is missing, and it is named
    let lacks = ask(&server, "/api/v1/access/people", &token).await;
    assert_eq!(lacks.status, 403);
    let challenge = lacks.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("error=\"insufficient_scope\"")
            && challenge.contains("scope=\"cuebook:admin\""),
        "{challenge}"
    );
    let more = provider
        .key
        .sign(&provider.claims("cuebook:read cuebook:admin"), Some("one"));
    assert_eq!(
        ask(&server, "/api/v1/access/people", &more).await.status,
        200
    );
    // none of our scopes opens nothing
    let none = provider.key.sign(&provider.claims("openid"), Some("one"));
    let none = ask(&server, ME, &none).await;
    assert_eq!(none.status, 403);
    assert!(
        none.header("www-authenticate")
            .unwrap()
            .contains("scope=\"cuebook:read\"")
    );
    // one person, made known once
    let people = server.get("root", "/api/v1/access/people").await.json();
    let known = people["people"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|p| p["name"] == "mina")
        .count();
    assert_eq!(known, 1);
    let disable = server
        .post("root", "/api/v1/access/people/mina", r#"{"disabled":true}"#)
        .await;
    assert_eq!(disable.status, 200);
    assert_eq!(ask(&server, ME, &token).await.status, 401);
    // it makes no lasting token
    server
        .post(
            "root",
            "/api/v1/access/people/mina",
            r#"{"disabled":false}"#,
        )
        .await;
    let bearer = format!("Bearer {more}");
    let headers = [
        ("Authorization", &*bearer),
        ("Content-Type", "application/json"),
    ];
    let lasting = send(
        server.address,
        "POST",
        "/api/v1/access/tokens",
        &headers,
        br#"{"label":"x"}"#,
    )
    .await;
    assert_eq!(lasting.status, 403, "{}", lasting.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_called_alike_at_the_provider_is_somebody_else_here() {
    let provider = Provider::start().await;
    let server = guarded(&provider).await;
    let mut claims = provider.claims("cuebook:admin");
    claims["preferred_username"] = "Root".into();
    claims["sub"] = "attacker".into();
    let token = provider.key.sign(&claims, Some("one"));
    let me = ask(&server, ME, &token).await.json();
    assert_eq!(me["name"], "Root-2");
    assert_eq!(me["grants"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_are_refused() {
    let provider = Provider::start().await;
    let server = guarded(&provider).await;
    let good = provider.claims("cuebook:admin");
    let with = |claim: &str, value: Value| {
        let mut claims = good.clone();
        claims[claim] = value;
        claims
    };
    let without = |claim: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(claim);
        claims
    };
    let now = jsonwebtoken::get_current_timestamp();
    let sign = |claims: &Value| provider.key.sign(claims, Some("one"));
    let stranger = Key::new("one");
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = |alg: &str| {
        format!(
            "{}.{}.",
            part(&json!({ "alg": alg, "typ": "JWT", "kid": "one" })),
            part(&good)
        )
    };
    // the public key, taken for a shared secret
    let confused = |secret: &[u8]| {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("one".into());
        jsonwebtoken::encode(&header, &good, &EncodingKey::from_secret(secret).unwrap()).unwrap()
    };
    let jwk = provider.key.jwk();
    let valid = sign(&good);
    let (head, signature) = valid.rsplit_once('.').unwrap();
    let (header, _) = head.split_once('.').unwrap();
    let own_key = {
        let mut header = Header::new(Algorithm::ES256);
        header.jwk = Some(serde_json::from_value(stranger.jwk()).unwrap());
        let der = stranger.pair.serialize_der();
        jsonwebtoken::encode(&header, &good, &EncodingKey::from_ec_der(&der)).unwrap()
    };
    assert_eq!(ask(&server, ME, &valid).await.status, 200);
    for (what, token) in [
        ("none", unsigned("none")),
        ("None", unsigned("None")),
        ("no signature", unsigned("ES256")),
        ("another key", stranger.sign(&good, Some("one"))),
        ("another key without a name", stranger.sign(&good, None)),
        ("a key in the token itself", own_key),
        (
            "a key that is not known",
            provider.key.sign(&good, Some("two")),
        ),
        (
            "the public key as a secret",
            confused(provider.key.pair.public_key_raw()),
        ),
        (
            "the key document as a secret",
            confused(jwk.to_string().as_bytes()),
        ),
        (
            "other claims",
            format!("{header}.{}.{signature}", part(&with("sub", "root".into()))),
        ),
        (
            "another audience",
            sign(&with("aud", "https://other.example.com".into())),
        ),
        ("no audience", sign(&without("aud"))),
        (
            "another issuer",
            sign(&with("iss", "https://evil.example".into())),
        ),
        ("no issuer", sign(&without("iss"))),
        ("expired", sign(&with("exp", (now - 120).into()))),
        ("no end", sign(&without("exp"))),
        ("not yet", sign(&with("nbf", (now + 120).into()))),
        ("nobody", sign(&without("sub"))),
        (
            "too long",
            sign(&with("padding", "x".repeat(10_000).into())),
        ),
    ] {
        let reply = ask(&server, ME, &token).await;
        assert_eq!(
            reply.status,
            401,
            "{what}: {}",
            String::from_utf8_lossy(&reply.body)
        );
        let challenge = reply.header("www-authenticate").unwrap();
        assert!(
            challenge.contains("error=\"invalid_token\""),
            "{what}: {challenge}"
        );
    }
    // clocks differ a little
    for claims in [
        with("exp", (now - 20).into()),
        with("nbf", (now + 20).into()),
    ] {
        assert_eq!(ask(&server, ME, &sign(&claims)).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_kept_and_unknown_ones_do_not_make_us_ask_again_and_again() {
    let provider = Provider::start().await;
    let server = guarded(&provider).await;
    let good = provider.claims("cuebook:read");
    for _ in 0..3 {
        let token = provider.key.sign(&good, Some("one"));
        assert_eq!(ask(&server, ME, &token).await.status, 200);
    }
    for _ in 0..5 {
        let token = provider.key.sign(&good, Some("made-up"));
        assert_eq!(ask(&server, ME, &token).await.status, 401);
    }
    assert_eq!(provider.published.read.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_learn_where_tokens_come_from_only_where_there_is_a_provider() {
    let provider = Provider::start().await;
    let server = guarded(&provider).await;
    let metadata = "/.well-known/oauth-protected-resource";
    for path in [metadata, &format!("{metadata}/mcp")] {
        let said = send(server.address, "GET", path, &[], b"").await.json();
        assert_eq!(said["resource"], "https://prompts.example.com/mcp");
        assert_eq!(
            said["authorization_servers"],
            json!([provider.published.issuer])
        );
        assert_eq!(said["scopes_supported"][0], "cuebook:read");
        assert_eq!(said["bearer_methods_supported"], json!(["header"]));
    }
    let asked = send(server.address, "POST", "/mcp", &[], b"{}").await;
    assert_eq!(asked.status, 401);
    let challenge = asked.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("resource_metadata=\"http://")
            && challenge.contains("/.well-known/oauth-protected-resource/mcp\""),
        "{challenge}"
    );
    // tokens of Cuebook work beside it
    assert_eq!(server.get("reader", ME).await.status, 200);

    let plain = Guarded::start(FILES, &ROLES).await;
    for path in [metadata, &format!("{metadata}/mcp")] {
        assert_eq!(send(plain.address, "GET", path, &[], b"").await.status, 404);
    }
    let asked = send(plain.address, "POST", "/mcp", &[], b"{}").await;
    assert_eq!(
        asked.header("www-authenticate"),
        Some("Bearer realm=\"Cuebook\"")
    );
    let token = provider
        .key
        .sign(&provider.claims("cuebook:read"), Some("one"));
    assert_eq!(ask(&plain, ME, &token).await.status, 401);
}
