use super::*;

/// Characters that chance could have made; put together here, so that this file holds no secret.
fn chance(alphabet: &str, length: usize, seed: u64) -> String {
    let letters: Vec<char> = alphabet.chars().collect();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            letters[usize::try_from(state % letters.len() as u64).unwrap()]
        })
        .collect()
}

const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &str = "0123456789abcdef";

/// One of each kind: kind, text.
fn one_of_each(seed: u64) -> Vec<(&'static str, String)> {
    let word = |n| chance(WORD, n, seed);
    let upper = |n| chance(UPPER, n, seed);
    let hex = |n| chance(HEX, n, seed);
    let begin = |kind: &str| format!("-----BEGIN {kind}-----");
    vec![
        (
            "a private key",
            format!("{}\n{}\n", begin("RSA PRIVATE KEY"), word(64)),
        ),
        (
            "a private key",
            format!("  {}\n  {}\n", begin("PRIVATE KEY"), word(64)),
        ),
        (
            "a private key",
            format!("> {}\n> {}\n", begin("OPENSSH PRIVATE KEY"), word(64)),
        ),
        (
            "a private key",
            format!("\"key\": \"{}\\n{}\\n", begin("EC PRIVATE KEY"), word(64)),
        ),
        (
            "a private key",
            format!(
                "{}\nVersion: GnuPG v2\n\n{}",
                begin("PGP PRIVATE KEY BLOCK"),
                word(64)
            ),
        ),
        (
            "a private key",
            format!(
                "{}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,00\n\n{}",
                begin("RSA PRIVATE KEY"),
                word(64)
            ),
        ),
        (
            "a PuTTY private key",
            format!("{}: 14\n{}", "Private-Lines", word(64)),
        ),
        (
            "an age secret key",
            format!("AGE-SECRET-{}-1{}", "KEY", upper(58)),
        ),
        ("an AWS access key", format!("{}{}", "AKIA", upper(16))),
        (
            "an AWS access key",
            format!("aws_access_key_id = {}{}", "ASIA", upper(16)),
        ),
        ("a Google API key", format!("{}{}", "AIza", word(35))),
        (
            "a Google OAuth secret",
            format!("{}-{}", "GOCSPX", word(28)),
        ),
        (
            "an Azure key",
            format!("AccountName=a;{}={}==;x", "AccountKey", word(86)),
        ),
        ("a GitHub token", format!("{}_{}", "ghp", word(36))),
        ("a GitHub token", format!("token: {}_{}", "ghs", word(36))),
        (
            "a GitHub token",
            format!("github_{}_{}_{}", "pat", word(22), word(59)),
        ),
        ("a GitLab token", format!("{}-{}", "glpat", word(20))),
        (
            "a Cuebook token",
            format!("{}_k3v9x2mq_{}", "cbk", word(43)),
        ),
        (
            "a Slack token",
            format!("{}-1234509876-0987612345-{}", "xoxb", word(24)),
        ),
        (
            "a Slack webhook",
            format!(
                "https://hooks.slack.com/{}/T{}/B{}/{}",
                "services",
                upper(9),
                upper(9),
                word(24)
            ),
        ),
        ("a Stripe key", format!("{}_live_{}", "sk", word(24))),
        (
            "an npm token",
            format!("//registry/:_authToken={}_{}", "npm", word(36)),
        ),
        (
            "a PyPI token",
            format!("{}-AgEIcHlwaS5vcmc{}", "pypi", word(80)),
        ),
        (
            "an Anthropic key",
            format!("{}-ant-api03-{}AA", "sk", word(93)),
        ),
        ("an OpenAI key", format!("{}-{}", "sk", word(48))),
        (
            "an OpenAI key",
            format!("OPENAI_API_KEY={}-proj-{}", "sk", word(120)),
        ),
        ("a Hugging Face token", format!("{}_{}", "hf", word(34))),
        (
            "a SendGrid key",
            format!("{}.{}.{}", "SG", word(22), word(43)),
        ),
        ("a DigitalOcean token", format!("{}_v1_{}", "dop", hex(64))),
        ("a Vault token", format!("{}.{}", "hvs", word(90))),
        ("a Databricks token", format!("{}{}", "dapi", hex(32))),
        (
            "a Grafana token",
            format!("{}_{}_{}", "glsa", word(32), hex(8)),
        ),
        ("a Shopify token", format!("{}_{}", "shpat", hex(32))),
        ("a Docker token", format!("dckr_{}_{}", "pat", word(27))),
        ("a RubyGems key", format!("{}_{}", "rubygems", hex(48))),
        ("a New Relic key", format!("{}-{}", "NRAK", upper(27))),
        ("a Sentry token", format!("{}_{}", "sntryu", hex(64))),
        ("a Linear key", format!("lin_{}_{}", "api", word(40))),
        ("an Atlassian token", format!("{}{}", "ATATT3", word(180))),
        (
            "a JSON web token",
            format!(
                "Authorization: Bearer {}{}.{}{}.{}",
                "eyJ",
                word(30),
                "eyJ",
                word(60),
                word(43)
            ),
        ),
        (
            "a password in a URL",
            format!("postgres://app:{}7x@db.internal/x", word(16)),
        ),
        (
            "a secret value",
            format!("aws_secret_access_{} = {}", "key", word(40)),
        ),
        (
            "a secret value",
            format!("export SERVICE_{}=\"{}\"", "TOKEN", word(32)),
        ),
        (
            "a secret value",
            format!("client_{}: {}", "secret", hex(64)),
        ),
    ]
}

fn kinds(text: &str) -> Vec<(u32, u32, String)> {
    find(&"prompts/x.md".into(), text.as_bytes())
        .into_iter()
        .map(|p| {
            let kind = p.message.strip_prefix("this looks like ").unwrap();
            (
                p.line,
                p.column,
                kind.split(" (").next().unwrap().to_owned(),
            )
        })
        .collect()
}

#[test]
fn every_kind_is_found_wherever_it_stands() {
    for seed in 1..20 {
        for (kind, text) in one_of_each(seed) {
            for (before, after) in [
                ("", ""),
                ("Use this:\n", "\nthen go on"),
                ("`", "`"),
                ("결제 ", "."),
            ] {
                let whole = format!("{before}{text}{after}");
                let found = kinds(&whole);
                assert_eq!(found.len(), 1, "{kind}: {whole} {found:?}");
                assert_eq!(found[0].2, kind, "{whole}");
            }
        }
    }
}

#[test]
fn a_secret_is_never_shown() {
    for (kind, text) in one_of_each(7) {
        for problem in find(&"x.md".into(), text.as_bytes()) {
            let shown = format!("{problem:?}");
            for part in text.split(|c: char| !c.is_ascii_alphanumeric()) {
                assert!(part.len() < 16 || !shown.contains(part), "{kind}: {shown}");
            }
            assert_eq!(problem.excerpt, None);
        }
    }
}

#[test]
fn what_a_person_wrote_as_an_example_passes() {
    let begin = format!("-----BEGIN {}-----", "PRIVATE KEY");
    for text in [
        "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "ghp_000000000000000000000000000000000000",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "token: ghp_YOUR_TOKEN_HERE",
        "glpat-your-token-goes-here-please",
        "xoxb-your-bot-token-goes-right-here",
        "sk-ant-api03-...",
        "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "export TOKEN=${{ secrets.GITHUB_TOKEN }}",
        "password: {{ .Values.database.password }}",
        "password = \"<the password of the service account>\"",
        "API_KEY=$(vault kv get -field=key secret/app)",
        "postgres://user:password@localhost/db",
        "postgres://user:${DB_PASSWORD}@db/app",
        "https://app:{{ token }}@example.com/x.git",
        "token: incident-triage-runbook-2024-v2",
        "secret: projects/42/secrets/database-url/versions/7",
        "the token bucket holds 1000000000000000000000 tokens",
        "tokens: 20, api_key: none",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "image: registry/app@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "task-sk-and-risk-analysis-of-the-disk-subsystem-in-the-whole-company",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ",
        "a request id: 01JQ8ZC3M5V7RGWZ1E0S2T4X6Y, trace 4bf92f3577b34da6a3ce929d0e0e4736",
    ] {
        assert_eq!(kinds(text), [], "{text}");
    }
    for text in [
        format!("a key begins with {begin}"),
        format!("{begin}\n...\n-----END PRIVATE KEY-----"),
        format!("{begin}\n{}\n", "M".repeat(64)),
        format!("{}_{}", "ghp", chance(WORD, 50, 3)),
    ] {
        assert_eq!(kinds(&text), [], "{text}");
    }
}

#[test]
fn a_comment_allows_one() {
    let token = format!("{}_{}", "ghp", chance(WORD, 36, 5));
    for text in [
        format!("{token} <!-- secret: allow -->"),
        format!("<!-- secret: allow -->\n{token}"),
        format!("{{# secret: allow #}}\n{token}"),
        format!("{token} {{#- secret: allow -#}}"),
        format!("key: {token} # secret: allow"),
        format!("  // secret:allow (revoked in 2024)\n  x = \"{token}\""),
        format!("-- secret: allow\r\n{token}\r\n"),
    ] {
        assert_eq!(kinds(&text), [], "{text}");
    }
    for text in [
        format!("secret: allow {token}"),
        format!("<!-- secret: allow -->\n\n{token}"),
        format!("x <!-- secret: allow -->\n{token}"),
        format!("# secret: allowed\n{token}"),
        format!("{token}\n# secret: allow"),
    ] {
        assert_eq!(kinds(&text).len(), 1, "{text}");
    }
    let two = format!("{token} # secret: allow\n{token}");
    assert_eq!(kinds(&two), [(2, 1, "a GitHub token".to_owned())]);
}

#[test]
fn places_are_those_of_the_file() {
    let token = format!("{}_{}", "ghp", chance(WORD, 36, 5));
    let text = format!("\u{feff}a\r\nb\r결제 {token}\r\n");
    assert_eq!(kinds(&text), [(3, 4, "a GitHub token".to_owned())]);
    let many = format!("{token}\n").repeat(50);
    assert_eq!(kinds(&many).len(), MOST);
}

#[test]
fn hostile_text_is_read_in_one_pass() {
    // each would take minutes if every beginning were followed to the end of the text
    for unit in [
        "eyJ",
        "eyJaaaaaaaaaaa.",
        "sk-",
        "sk-proj-",
        "-----BEGIN ",
        "token=",
        "://a:",
        "xoxb-",
        "glpat-a ",
        "password: a",
    ] {
        let text = unit.repeat(1_000_000 / unit.len());
        assert!(kinds(&text).len() <= MOST, "{unit}");
    }
}

#[test]
fn other_problems_do_not_show_it() {
    let token = format!("{}_{}", "ghp", chance(WORD, 36, 5));
    let source = Source::new(&"x.md".into(), &format!("a\n{{{{ {token} }}}}\nb\nc\n"));
    let secrets = find(&source.path, source.text.as_bytes());
    assert_eq!(secrets.len(), 1);
    let problem =
        |at: usize| source.problem(Severity::Error, "x", at..at + 1, source.text.clone(), None);
    let mut others = vec![problem(5), problem(source.text.len() - 1)];
    redact(&secrets, &mut others);
    assert!(!format!("{:?}", others[0]).contains(&token[..12]));
}
