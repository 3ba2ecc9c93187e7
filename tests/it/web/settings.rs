//! The limits in force, as the page of settings shows them; what was typed there and refused.

use super::BROWSER;
use crate::access::Guarded;
use crate::support::http::send;

async fn settings(server: &Guarded, lang: &str) -> String {
    let bearer = server.bearer("reader");
    let headers = [
        ("Authorization", &*bearer),
        ("Accept", BROWSER),
        ("Accept-Language", lang),
    ];
    let page = send(server.address, "GET", "/settings", &headers, b"").await;
    assert_eq!(page.status, 200, "{}", page.text());
    page.text().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_shows_the_limits_in_force_and_no_secret() {
    let people = [("reader", &[("reader", "**")][..])];
    let server = Guarded::with(&[], &people, |config| {
        config.limits.output_bytes = 123_456;
        config.limits.closure_files = 77;
        config.network.rates.per_minute = 7_654;
        config.upstream.username = "31337".into();
    })
    .await;
    let page = settings(&server, "en").await;
    let row = |name: &str, value: &str, unit: &str| {
        format!("<td><code>{name}</code></td><td class=\"num\">{value}</td><td>{unit}</td>")
    };
    for (name, value, unit) in [
        ("limits.output_bytes", "123,456", "bytes"),
        ("http.requests_per_minute", "7,654", "per minute"),
        ("limits.closure_files", "77", "count"),
        ("records.usage_days", "800", "days"),
        (
            "rendering.caller_cpu_ms_per_minute",
            "30,000",
            "ms per minute",
        ),
    ] {
        assert!(page.contains(&row(name, value, unit)), "{name}: {page}");
    }
    // what is no number is no limit, whatever it says
    for other in [
        "31337",
        "<code>upstream.username",
        "<code>tls.",
        "<code>access.oidc",
    ] {
        assert!(!page.contains(other), "{other}: {page}");
    }
    let korean = settings(&server, "ko").await;
    assert!(korean.contains("적용 중인 한도") && !korean.contains("Limits in force"));
    assert!(korean.contains(&row("limits.output_bytes", "123,456", "바이트")));
    let meaning = "<td>프롬프트 하나를 렌더링한 글</td>";
    assert!(korean.contains(meaning), "{korean}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_typed_into_a_form_of_the_settings_comes_back_where_it_is_refused() {
    let server = Guarded::start(&[], &[]).await;
    let bearer = server.bearer("root");
    let headers = [
        ("Authorization", &*bearer),
        ("Accept", BROWSER),
        ("Content-Type", "application/x-www-form-urlencoded"),
    ];
    let people = "/settings/people";
    let page = send(server.address, "GET", people, &headers, b"").await;
    let csrf = page.text().split("name=\"csrf\" value=\"").nth(1).unwrap();
    let csrf = csrf.split('"').next().unwrap();
    for (path, fields, shown) in [
        (
            people,
            "do=add&name=no+name%21&email=no+mail",
            &["value=\"no name!\"", "value=\"no mail\""][..],
        ),
        (
            people,
            "do=grant&who=nobody-here&role=reader&path=prompts%2Fsre%2F**",
            &["value=\"nobody-here\"", "value=\"prompts/sre/**\""],
        ),
        (
            people,
            "do=join&group=sre&name=nobody-here",
            &["value=\"sre\"", "value=\"nobody-here\""],
        ),
        (
            "/settings",
            "do=token&label=laptop&days=9999&paths=prompts%2Fsre%2F**",
            &["value=\"laptop\"", "value=\"9999\""],
        ),
    ] {
        let body = format!("csrf={csrf}&{fields}");
        let refused = send(server.address, "POST", path, &headers, body.as_bytes()).await;
        let html = refused.text();
        assert!(matches!(refused.status, 400..=499), "{fields}: {html}");
        assert!(html.contains("role=\"alert\""), "{html}");
        for words in shown {
            assert!(html.contains(words), "no {words} in {html}");
        }
    }
}
