//! Deliveries of other than the newest text: what the command prints leads to the very bytes that were delivered.

use std::time::Duration;

use super::*;

fn text(words: &str) -> String {
    format!(
        "---\ndescription: D\nresources:\n  - {{ name: runbook, uri: \"runbook://payments\", as: text }}\n---\n{words}\n"
    )
}

/// Runs the `git show` of a printed line in the bare repository; the line says the SHA-256 of what it gives.
#[track_caller]
fn show(host: &Host, line: &str) -> String {
    use sha2::Digest as _;
    let (_, command) = line.split_once("git show ").unwrap();
    let (object, sha256) = command.split_once("   sha256 ").unwrap();
    let bytes = git_with_input(&host.bare(), &["show", object], b"");
    let digest = sha2::Sha256::digest(&bytes);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, sha256, "{line}");
    String::from_utf8(bytes).unwrap()
}

/// What `cuebook deliveries` prints of a prompt, newest first: the text and the resources of each.
async fn printed(host: &Host, name: &str, many: usize) -> Vec<(String, Vec<String>)> {
    let told = soon("the deliveries to be written", async {
        loop {
            let mut process = Command::new(env!("CARGO_BIN_EXE_cuebook"));
            process
                .args(["deliveries", "--prompt", name, "--data-dir"])
                .arg(host.data_dir());
            let ran = run(process);
            assert!(ran.ok, "{}", ran.text);
            if ran.text.matches("    git show").count() >= many {
                return ran.text;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    for line in told.lines() {
        if line.starts_with("    git show") {
            out.push((show(host, line), Vec::new()));
        } else if line.starts_with("    with ") {
            out.last_mut().unwrap().1.push(show(host, line));
        }
    }
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_of_an_earlier_version_leads_to_its_own_text() {
    let host = Host::small().await;
    let work = host.work("author");
    work.publish(&[
        ("prompts/sre/route.md", &text("one")),
        ("resources/runbook/payments.md", "runbook 1\n"),
    ]);
    work.publish(&[
        ("prompts/sre/route.md", &text("two")),
        ("resources/runbook/payments.md", "runbook 2\n"),
    ]);
    let client = host.client();
    soon("the versions", async {
        while client.get("route", json!({})).await["_meta"]["dev.cuebook/source"]["version"] != 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    client.texts("route@v1", json!({})).await;
    client.texts("route@v2", json!({})).await;
    // the version that it was is in another file by now
    work.ok(&["mv", "prompts/sre/route.md", "prompts/review/route.md"]);
    work.write("prompts/review/route.md", text("three"));
    work.publish(&[("resources/runbook/payments.md", "runbook 3\n")]);
    soon("the third version", async {
        while client.get("route", json!({})).await["_meta"]["dev.cuebook/source"]["version"] != 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // what is the same within a second is one row
    let many = printed(&host, "route", 3).await.len();
    // another client: the same within a second would be one row
    let other = Client {
        name: "other",
        ..host.client()
    };
    other.texts("route@v1", json!({})).await;
    other.texts("route@v3", json!({})).await;
    let printed = printed(&host, "route", many + 2).await;
    let expected = |words: &str, runbook: &str| (text(words), vec![runbook.to_owned()]);
    assert_eq!(printed[0], expected("three", "runbook 3\n"));
    assert_eq!(printed[1], expected("one", "runbook 3\n"));
    let before = &printed[2..];
    assert!(
        before.contains(&expected("one", "runbook 2\n")),
        "{before:?}"
    );
    assert!(
        before.contains(&expected("two", "runbook 2\n")),
        "{before:?}"
    );

    // a label that the library serves by default
    work.publish(&[
        ("cuebook.toml", "serve = \"production\"\n"),
        ("labels.toml", "[production]\nroute = \"v2\"\n"),
    ]);
    client.texts("route", json!({})).await;
    let printed = self::printed(&host, "route", printed.len() + 1).await;
    assert_eq!(printed[0], expected("two", "runbook 3\n"));
}
