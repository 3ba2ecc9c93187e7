//! F4: files in any script under `LANG=C`.

use super::*;
use crate::support::library::{TestLibrary, git};

const PROMPT: &str = "---\ntitle: 障害の一次対応\ndescription: 결제 서비스\narguments:\n  - { name: service, values: { file: 서비스.txt } }\nresources:\n  - { name: r, uri: \"runbook://결제\" }\n---\n{{ service }} 장애, 対応 {% include \"심각도.md\" %}\n";

#[test]
fn f4_every_locale_gives_the_same() {
    let library = TestLibrary::with(&[
        ("prompts/sre/triage.md", PROMPT),
        ("partials/심각도.md", "심각도 🔥"),
        ("values/서비스.txt", "결제\n"),
        ("resources/runbook/결제.md", "런북\n"),
    ]);
    // a library in a folder of that script, too
    let folder = Folder::new(&[]);
    let place = folder.at("팀/ライブラリ");
    std::fs::create_dir_all(folder.at("팀")).unwrap();
    git(
        folder.path(),
        &[
            "clone",
            "--quiet",
            library.bare().to_str().unwrap(),
            place.to_str().unwrap(),
        ],
    );
    let mut seen = Vec::new();
    for (variable, value) in [
        ("LANG", "C"),
        ("LC_ALL", "C"),
        ("LC_ALL", "POSIX"),
        ("LANG", "ko_KR.UTF-8"),
        ("LC_ALL", "ja_JP.eucJP"),
        ("LANG", ""),
    ] {
        let mut outputs = Vec::new();
        for arguments in [
            &["check", "--format", "json"][..],
            &["check", "--revision", "HEAD"],
            &["render", "triage", "service=결제 障害"],
            &["render", "triage", "service=결제", "--format", "json"],
        ] {
            let ran: Ran = command(&place, arguments)
                .env(variable, value)
                .output()
                .unwrap()
                .into();
            assert_eq!(
                (ran.code, ran.stderr.as_str()),
                (0, ""),
                "{variable}={value}: {ran:?}"
            );
            outputs.push(ran.stdout);
        }
        seen.push(outputs);
    }
    assert!(seen.iter().all(|outputs| *outputs == seen[0]), "{seen:#?}");
    assert_eq!(
        seen[0][2],
        "--- user\n결제 障害 장애, 対応 심각도 🔥\n--- user resource runbook://%EA%B2%B0%EC%A0%9C (text/markdown, resources/runbook/결제.md)\n런북\n"
    );
}

#[test]
fn f4_problems_in_any_script_are_told_under_lang_c() {
    let folder = Folder::new(&[
        (
            "prompts/sre/bad.md",
            "---\ndescription: 설명\n---\n장애 {{ 서비스 }}\n",
        ),
        ("prompts/장애/x.md", "X"),
    ]);
    let ran: Ran = command(folder.path(), &["check"])
        .env("LC_ALL", "C")
        .output()
        .unwrap()
        .into();
    assert_eq!(ran.code, 1);
    assert!(ran.stdout.contains("장애 {{ 서비스 }}"), "{}", ran.stdout);
    assert!(ran.stdout.contains("folder `장애`"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
}
