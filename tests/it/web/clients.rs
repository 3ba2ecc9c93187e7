//! What a proposal takes away from clients is among its checks.

use serde_json::json;

use super::BROWSER;
use crate::access::Guarded;
use crate::support::http::send;

fn prompt(arguments: &[&str]) -> String {
    let declared: String = arguments
        .iter()
        .flat_map(|name| ["  - name: ", *name, "\n"])
        .collect();
    let used: String = arguments
        .iter()
        .flat_map(|name| ["{{ ", *name, " }}\n"])
        .collect();
    format!("---\ndescription: D\narguments:\n{declared}---\nLook.\n{used}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_comes_to_hide_a_prompt_is_named_in_the_proposal() {
    let one = prompt(&["ticket"]);
    let server = Guarded::start(
        &[
            ("prompts/sre/look.md", &one),
            ("prompts/sre/wide.md", &prompt(&["ticket", "service"])),
        ],
        &[("ann", &[("author", "**")])],
    )
    .await;
    let ready = server.get("root", "/readyz").await.json();
    let wider = prompt(&["ticket", "service"]);
    let edited = wider.replace("Look.", "Look twice.");
    let body = json!({
        "title": "Say the service",
        "message": "",
        "base": ready["tip"],
        "files": {
            "prompts/sre/fresh.md": wider,
            "prompts/sre/look.md": wider,
            "prompts/sre/wide.md": edited,
        },
    });
    let opened = server
        .post("ann", "/api/v1/proposals", &body.to_string())
        .await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let effect = server.get("ann", "/api/v1/proposals/1/effect").await.json();
    let clients = |name: &str| {
        let prompts = effect["prompts"].as_array().unwrap();
        let found = prompts.iter().find(|prompt| prompt["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {effect}"))["clients"].clone()
    };
    let hidden = json!([{ "client": "Zed", "fit": "hidden", "notes": ["too_many_arguments"] }]);
    assert_eq!(clients("look"), hidden);
    // what was so before is no news
    assert_eq!(clients("wide"), json!(null));
    let bearer = server.bearer("ann");
    let english = [
        "at most one argument",
        "<code>/look</code> arrives otherwise than before",
        "<code>/fresh</code> is new, and arrives otherwise than it is written",
    ];
    let korean = [
        "인수가 하나 이하인",
        "<code>/look</code> — 이 클라이언트에는 전과",
        "<code>/fresh</code> — 새 프롬프트입니다.",
    ];
    for (lang, words) in [("en", english), ("ko", korean)] {
        let headers = [
            ("Authorization", &*bearer),
            ("Accept", BROWSER),
            ("Accept-Language", lang),
        ];
        let page = send(server.address, "GET", "/proposals/1", &headers, b"").await;
        let html = page.text();
        assert_eq!(page.status, 200, "{html}");
        let (_, checks) = html.split_once("id=\"checks\"").unwrap();
        let checks = checks.split("</section>").next().unwrap();
        assert!(
            checks.contains("<code>/look</code>") && checks.contains("Zed"),
            "{checks}"
        );
        for words in words {
            assert!(checks.contains(words), "no {words} in {checks}");
        }
        assert!(!checks.contains("<code>/wide</code>"), "{checks}");
    }
}
