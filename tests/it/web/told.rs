//! Lines that refuse something, in the language of who reads them: answers to the scripts of pages, and the pages.

use serde_json::{Value, json};

use super::review::{open, prompt, propose, server};
use crate::access::Guarded;
use crate::support::http::{Reply, send};

/// Asks as a script of a page does.
async fn ask(server: &Guarded, who: &str, method: &str, path: &str, body: &Value) -> Reply {
    ask_with(server, who, method, path, &[], body).await
}

async fn ask_with(
    server: &Guarded,
    who: &str,
    method: &str,
    path: &str,
    more: &[(&str, &str)],
    body: &Value,
) -> Reply {
    let bearer = server.bearer(who);
    let mut headers = vec![
        ("Authorization", &*bearer),
        ("Accept", "application/json"),
        ("Accept-Language", "ko-KR"),
        ("Content-Type", "application/json"),
        ("X-Cuebook", "1"),
    ];
    headers.extend_from_slice(more);
    send(
        server.address,
        method,
        path,
        &headers,
        body.to_string().as_bytes(),
    )
    .await
}

#[track_caller]
fn says(reply: &Reply, status: u16, words: &str) {
    assert_eq!(reply.status, status, "{}", reply.text());
    let problem = reply.json();
    let line = problem["detail"].as_str().or(problem["error"].as_str());
    assert!(line.unwrap().contains(words), "no `{words}` in {problem}");
    assert_eq!(reply.header("content-language"), Some("ko"));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_korean_is_refused_in_korean() {
    let server = server().await;
    let opened = propose(&server, "Mine", "", "Mine.").await;
    let head = opened["head"].as_str().unwrap();
    // nobody has signed in
    let headers = [("Accept", "application/json"), ("Accept-Language", "ko")];
    let nobody = send(server.address, "GET", "/api/v1/proposals", &headers, b"").await;
    says(&nobody, 401, "로그인해야 합니다");
    // the role, one's own work, what is missing, what was seen
    let (reviews, merge) = ("/api/v1/proposals/1/reviews", "/api/v1/proposals/1/merge");
    let approve = json!({ "verdict": "approve", "head": head });
    let merges = json!({ "head": head });
    says(
        &ask(&server, "ann", "POST", merge, &merges).await,
        403,
        "관리자에게 필요한 역할을 요청하세요",
    );
    says(
        &ask(&server, "ann", "POST", reviews, &approve).await,
        403,
        "prompts/sre/after.md: 권한이 없습니다",
    );
    let own = propose_as(&server, "mina").await;
    let mine = json!({ "verdict": "approve", "head": own["head"] });
    says(
        &ask(
            &server,
            "mina",
            "POST",
            "/api/v1/proposals/2/reviews",
            &mine,
        )
        .await,
        409,
        "제안 2에 직접 참여했으므로 승인할 수 없습니다",
    );
    let refused = ask(&server, "pub", "POST", merge, &merges).await;
    says(
        &refused,
        409,
        "최신 수정본에 승인이 1건 필요하며 지금 0건입니다",
    );
    let why = &refused.json()["refusals"][0];
    assert_eq!(why["code"], "approvals");
    assert!(
        why["detail"].as_str().unwrap().contains("검토 권한이 있고"),
        "{why}"
    );
    let say = json!({ "message": "x" });
    let old = [("If-Match", "\"old\"")];
    let comments = "/api/v1/proposals/1/comments";
    says(
        &ask_with(&server, "ann", "POST", comments, &old, &say).await,
        412,
        "그사이 제안 1이(가) 바뀌었습니다",
    );
    let large = json!({ "message": "x".repeat(600_000) });
    says(
        &ask(&server, "ann", "POST", comments, &large).await,
        413,
        "요청이 너무 큽니다",
    );
    // people, grants, tokens
    for (path, body, words) in [
        (
            "people",
            json!({ "name": "a b" }),
            "`a b`은(는) 쓸 수 없는 이름입니다",
        ),
        (
            "people",
            json!({ "name": "ann" }),
            "ann은(는) 이미 있습니다",
        ),
        (
            "grants",
            json!({ "who": "ann", "role": "king", "path": "**" }),
            "`king`은(는) 역할이 아닙니다",
        ),
        (
            "grants",
            json!({ "who": "ann", "role": "reader", "path": "/x" }),
            "`/x`은(는) 라이브러리 경로가 아닙니다",
        ),
        ("tokens", json!({ "label": "" }), "토큰을 어디에 쓰는지"),
    ] {
        let reply = ask(
            &server,
            "root",
            "POST",
            &format!("/api/v1/access/{path}"),
            &body,
        )
        .await;
        assert!(matches!(reply.status, 409 | 422), "{}", reply.text());
        says(&reply, reply.status, words);
    }
    // somebody who reads English, and a program that says nothing, are told in English
    let english = server.post("pub", merge, &merges.to_string()).await;
    assert!(
        english
            .text()
            .contains("takes 1 approval of the newest revision"),
        "{}",
        english.text()
    );
    assert_eq!(english.header("content-language"), None);
}

/// A proposal of a file of its own.
async fn propose_as(server: &Guarded, who: &str) -> Value {
    let ready = server.get("root", "/readyz").await.json();
    let files = json!({ "prompts/sre/other.md": prompt("Other.") });
    let body = json!({ "title": "Other", "base": ready["tip"], "files": files });
    let reply = server
        .post(who, "/api/v1/proposals", &body.to_string())
        .await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.json()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_korean_page_says_in_korean_what_keeps_a_proposal_back() {
    let server = server().await;
    propose(&server, "Mine", "", "Mine.").await;
    server.publish(&[("cuebook.toml", "format = 1\n")]).await;
    server
        .publish(&[("prompts/sre/after.md", &prompt("Theirs."))])
        .await;
    let page = open(&server, "mina", "/proposals/1", "ko").await;
    for shown in [
        "main에서도 prompts/sre/after.md이(가) 바뀌었습니다",
        "prompts/sre/after.md: 게시 권한이 없습니다",
    ] {
        assert!(page.text().contains(shown), "no {shown} in {}", page.text());
    }
    assert!(!page.text().contains("main has changed"), "{}", page.text());
    let english = open(&server, "mina", "/proposals/1", "en").await;
    assert!(
        english
            .text()
            .contains("main has changed prompts/sre/after.md as well")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn problems_are_told_in_korean_to_scripts_and_on_pages() {
    let server = server().await;
    let text =
        "---\ndescription: D\narguments: [{ name: service }]\n---\n{{ servce }}{{ service }}";
    let preview = json!({ "path": "prompts/sre/new.md", "text": text });
    let answer = ask(&server, "ann", "POST", "/api/v1/preview", &preview).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-language"), Some("ko"));
    let problem = &answer.json()["problems"][0];
    assert_eq!(problem["message"], "`servce`은(는) 선언된 인자가 아닙니다.");
    assert_eq!(problem["hint"], "혹시 `service`인가요?");
    // why it is rendered apart
    let text = prompt("{% set x = 1 %}{{ x }}");
    let preview = json!({ "path": "prompts/sre/new.md", "text": text });
    let answer = ask(&server, "ann", "POST", "/api/v1/preview", &preview).await;
    let why = answer.json()["lane"]["reason"]["why"].clone();
    assert_eq!(why, "`set`은(는) 값을 담아 두며, 그 값이 커질 수 있습니다.");
    // what a change would do
    let files = json!({ "files": { "prompts/sre/after.md": prompt("{{ nope }}") } });
    let checked = ask(&server, "root", "POST", "/editor/check", &files).await;
    let problem = &checked.json()["problems"][0];
    assert_eq!(
        problem["message"], "`nope`은(는) 선언된 인자가 아닙니다.",
        "{problem}"
    );
    // a program that reads English
    let body = files.to_string();
    let english = server.post("root", "/editor/check", &body).await;
    let problem = &english.json()["problems"][0];
    assert_eq!(problem["message"], "`nope` is not an argument");
    // a proposal
    propose(&server, "Mine", "", "Run !`ls` now.").await;
    let page = open(&server, "mina", "/proposals/1", "ko").await;
    for words in ["셸 명령으로 실행합니다", "느낌표 없이 명령을 쓰세요"] {
        assert!(page.text().contains(words), "no {words} in {}", page.text());
    }
}
