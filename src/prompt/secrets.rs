//! Secrets in a library's texts: what looks like a key or a token that opens something.
//!
//! A literal beginning is looked for first (all of them in one pass), then the shape of what follows, then whether it
//! is a placeholder. Shapes are those that the issuers document. Nothing found is ever shown beyond its first four
//! characters.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

use super::problem::{Problem, Severity};
use super::source::Source;

/// The code of these problems.
pub const CODE: &str = "secret";
/// Secrets of one file that are reported; removing them shows the rest.
const MOST: usize = 20;
/// Longest text that is looked at from a beginning, in bytes.
const REACH: usize = 4096;
/// Characters of a secret that are shown.
const SHOWN: usize = 4;

/// What secrets of one kind look like.
struct Shape {
    kind: &'static str,
    /// Each begins one, in this case of letters.
    begins: &'static [&'static str],
    /// What follows a beginning, the beginning itself included; group 1 is the part that chance made.
    pattern: &'static str,
}

const fn shape(
    kind: &'static str,
    begins: &'static [&'static str],
    pattern: &'static str,
) -> Shape {
    Shape {
        kind,
        begins,
        pattern,
    }
}

const SHAPES: &[Shape] = &[
    shape(
        "a private key",
        &["-----BEGIN "],
        // PEM and PGP, also as one JSON string, quoted or indented; a block without content is an illustration
        r"^-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z-]{1,40}: [^\n\\]{0,200}|\\r|\\n|[\s>|*#])*([A-Za-z0-9+/]{40,100})",
    ),
    shape(
        "a PuTTY private key",
        &["Private-Lines: "],
        r"^Private-Lines: \d{1,4}\s{1,4}([A-Za-z0-9+/]{40,100})",
    ),
    shape(
        "an age secret key",
        &["AGE-SECRET-KEY-1"],
        r"^AGE-SECRET-KEY-1([A-Z0-9]{58})",
    ),
    shape(
        "an AWS access key",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        r"^A[KSBC][IC]A([A-Z2-7]{16})",
    ),
    shape("a Google API key", &["AIza"], r"^AIza([A-Za-z0-9_-]{35})"),
    shape(
        "a Google OAuth secret",
        &["GOCSPX-", "ya29."],
        r"^(?:GOCSPX-|ya29\.)([A-Za-z0-9_-]{28,400})",
    ),
    shape(
        "an Azure key",
        &["AccountKey=", "SharedAccessKey="],
        r"^[A-Za-z]+Key=([A-Za-z0-9+/]{43,86}={1,2})",
    ),
    shape(
        "a GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"^(?:gh[pousr]_([A-Za-z0-9]{36})|github_pat_([A-Za-z0-9]{22}_[A-Za-z0-9]{59}))",
    ),
    shape(
        "a GitLab token",
        &[
            "glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-", "glimt-", "glagent-",
            "glft-",
        ],
        r"^gl[a-z]{2,6}-([A-Za-z0-9_-]{20,300})",
    ),
    shape(
        "a Slack token",
        &[
            "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xapp-",
        ],
        r"^(?:xox[bpares][.-]|xapp-)([A-Za-z0-9.-]{24,300})",
    ),
    shape(
        "a Slack webhook",
        &["https://hooks.slack.com/"],
        r"^https://hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/]{40,100})",
    ),
    shape(
        "a Stripe key",
        &["sk_live_", "rk_live_", "sk_test_", "rk_test_", "whsec_"],
        r"^(?:[sr]k_(?:live|test)_|whsec_)([A-Za-z0-9+/]{24,250})",
    ),
    shape(
        "a Cuebook token",
        &["cbk_"],
        r"^cbk_[a-z2-9]{8}_([A-Za-z0-9_-]{43})",
    ),
    shape("an npm token", &["npm_"], r"^npm_([A-Za-z0-9]{36})"),
    shape(
        "a PyPI token",
        &["pypi-AgE"],
        r"^pypi-AgE[A-Za-z0-9_-]{0,20}([A-Za-z0-9_-]{50,400})",
    ),
    shape(
        "an Anthropic key",
        &["sk-ant-"],
        r"^sk-ant-[a-z]{3,10}[0-9]{2}-([A-Za-z0-9_-]{40,200})",
    ),
    shape(
        "an OpenAI key",
        &["sk-"],
        r"^sk-(?:(?:proj|svcacct|admin)-([A-Za-z0-9_-]{40,250})|([A-Za-z0-9]{48}))",
    ),
    shape("a Hugging Face token", &["hf_"], r"^hf_([A-Za-z0-9]{34})"),
    shape(
        "a SendGrid key",
        &["SG."],
        r"^SG\.([A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})",
    ),
    shape(
        "a DigitalOcean token",
        &["dop_v1_", "doo_v1_", "dor_v1_"],
        r"^do[opr]_v1_([a-f0-9]{64})",
    ),
    shape(
        "a Vault token",
        &["hvs.", "hvb.", "hvr."],
        r"^hv[sbr]\.([A-Za-z0-9_-]{24,300})",
    ),
    shape("a Databricks token", &["dapi"], r"^dapi([a-f0-9]{32})"),
    shape(
        "a Grafana token",
        &["glsa_", "glc_eyJ"],
        r"^(?:glsa_([A-Za-z0-9]{32}_[a-f0-9]{8})|glc_eyJ([A-Za-z0-9+/=]{32,400}))",
    ),
    shape(
        "a Shopify token",
        &["shpat_", "shpca_", "shppa_", "shpss_"],
        r"^shp(?:at|ca|pa|ss)_([a-fA-F0-9]{32})",
    ),
    shape(
        "a Docker token",
        &["dckr_pat_", "dckr_oat_"],
        r"^dckr_[op]at_([A-Za-z0-9_-]{27,32})",
    ),
    shape(
        "a RubyGems key",
        &["rubygems_"],
        r"^rubygems_([a-f0-9]{48})",
    ),
    shape("a New Relic key", &["NRAK-"], r"^NRAK-([A-Z0-9]{27})"),
    shape(
        "a Sentry token",
        &["sntryu_", "sntrys_"],
        r"^sntry[us]_([A-Za-z0-9_=+/-]{64,400})",
    ),
    shape("a Linear key", &["lin_api_"], r"^lin_api_([A-Za-z0-9]{40})"),
    shape(
        "an Atlassian token",
        &["ATATT3"],
        r"^ATATT3([A-Za-z0-9_=-]{150,300})",
    ),
    shape(
        "a JSON web token",
        &["eyJ"],
        r"^eyJ[A-Za-z0-9_-]{10,1000}\.(eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{20,700})",
    ),
    shape(
        "a password in a URL",
        &["://"],
        r"^://[^\s:/@?#]{1,80}:([^\s:/@?#]{8,200})@[A-Za-z0-9.-]",
    ),
];

/// Names of what must stay secret, any case; a value that chance made may follow.
const NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "accesskey",
    "access-key",
    "auth_key",
    "account_key",
    "private_key",
];

/// The rest of the name, a sign, a value.
const VALUE: &str = r#"^[A-Za-z0-9_-]{0,30}["'`]{0,2}[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}["'`]{0,2}([A-Za-z0-9+/_=.~-]{20,200})"#;

struct Scanner {
    begins: AhoCorasick,
    /// For each beginning, its shape.
    shape_of: Vec<usize>,
    patterns: Vec<Regex>,
    names: AhoCorasick,
    value: Regex,
}

/// Everything here is constant; a test makes it.
static SCANNER: LazyLock<Option<Scanner>> = LazyLock::new(|| {
    let mut begins: Vec<&str> = Vec::new();
    let mut shape_of = Vec::new();
    for (i, shape) in SHAPES.iter().enumerate() {
        begins.extend(shape.begins);
        shape_of.extend(shape.begins.iter().map(|_| i));
    }
    let patterns: Result<Vec<Regex>, _> = SHAPES.iter().map(|s| Regex::new(s.pattern)).collect();
    Some(Scanner {
        begins: AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(begins)
            .ok()?,
        shape_of,
        patterns: patterns.ok()?,
        names: AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::LeftmostLongest)
            .build(NAMES)
            .ok()?,
        value: Regex::new(VALUE).ok()?,
    })
});

/// Finds the secrets of a stored text, by line; one in a line that allows it, or below a line that does, is none.
pub fn find(path: &Arc<str>, bytes: &[u8]) -> Vec<Problem> {
    let Some(scanner) = &*SCANNER else {
        return Vec::new();
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Vec::new();
    };
    // nearly every text has none, and then nothing is copied
    if scanner.scan(text).is_empty() {
        return Vec::new();
    }
    let source = Source::new(path, text);
    let found = scanner.scan(&source.text);
    // a values file has no comments: what looks like one would be offered to people with the value
    let has_comments = !path.starts_with("values/");
    let reported = found
        .into_iter()
        .filter(|(_, (span, _))| !(has_comments && is_allowed(&source, span.start)))
        .take(MOST);
    reported
        .map(|(_, (span, kind))| {
            let shown: String = source.text[span.clone()].chars().take(SHOWN).collect();
            let mut problem = source.problem(
                Severity::Error,
                CODE,
                span,
                format!("this looks like {kind} (`{shown}…`)"),
                Some(
                    "remove it here, and revoke it: a push may have shown it; if it opens nothing, say so with `secret: allow` in a comment on its line or alone on the line before"
                        .into(),
                ),
            );
            problem.excerpt = None;
            problem
        })
        .collect()
}

/// Takes what other problems of a file quote of its secrets out of them.
pub fn redact(secrets: &[Problem], others: &mut [Problem]) {
    for other in others {
        let mut same = secrets.iter().filter(|secret| secret.path == other.path);
        if same.clone().next().is_none() {
            continue;
        }
        // a key goes on for many lines
        other.excerpt = None;
        if same.any(|secret| secret.line.abs_diff(other.line) <= 1) {
            "there is another problem here; it is told once the secret is gone"
                .clone_into(&mut other.message);
            other.hint = None;
        }
    }
}

/// Where secrets were found, and of what kind.
type Found = BTreeMap<usize, (Range<usize>, &'static str)>;

impl Scanner {
    fn scan(&self, text: &str) -> Found {
        let mut found = Found::new();
        for hit in self.begins.find_iter(text) {
            let shape = self.shape_of[hit.pattern().as_usize()];
            let start = hit.start();
            // `://` follows a scheme; every other beginning begins a word
            let begins_word = &text[hit.range()] == "://" || !ends_in_word(&text[..start]);
            if !begins_word {
                continue;
            }
            let Some((end, chance)) = matched(&self.patterns[shape], reach(text, start)) else {
                continue;
            };
            if goes_on(&text[start + end..]) || is_placeholder(chance) {
                continue;
            }
            if &text[hit.range()] == "://" && !is_random_password(chance) {
                continue;
            }
            found.insert(start, (start..start + end, SHAPES[shape].kind));
        }
        for hit in self.names.find_iter(text) {
            let from = hit.end();
            let Some((end, value)) = matched(&self.value, reach(text, from)) else {
                continue;
            };
            // the value may end a sentence
            let end = end - value.len() + value.trim_end_matches('.').len();
            let value = value.trim_end_matches('.');
            let span = from + end - value.len()..from + end;
            let known = found
                .values()
                .any(|(other, _)| other.start < span.end && span.start < other.end);
            if !known && is_random(value) && !is_placeholder(value) {
                found.insert(span.start, (span, "a secret value"));
            }
        }
        found
    }
}

/// The text from a place, as far as a secret may reach.
fn reach(text: &str, start: usize) -> &str {
    let mut end = text.len().min(start + REACH);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[start..end]
}

/// The end of a match at the beginning, and the part that chance made.
fn matched<'t>(pattern: &Regex, text: &'t str) -> Option<(usize, &'t str)> {
    let found = pattern.captures(text)?;
    let chance = found.iter().skip(1).flatten().next()?;
    Some((chance.end(), chance.as_str()))
}

fn ends_in_word(text: &str) -> bool {
    text.bytes()
        .next_back()
        .is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// Whether a word goes on where a secret should have ended: it is longer than its kind can be.
fn goes_on(text: &str) -> bool {
    text.bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Words that stand in what is no secret.
const PLACEHOLDERS: &[&str] = &[
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "replace",
    "insert",
    "your",
    "dummy",
    "redacted",
    "sample",
    "secret",
    "password",
    "xxxx",
    "****",
    "....",
    "notreal",
    // the token that jwt.io and its copies show: {"sub":"1234567890" …
    "eyjzdwiioiixmjm0nty3odkw",
];

/// Least entropy of a random part, in bits a character: sixteen random hex digits have 3 or more nearly always.
const LEAST_ENTROPY: f64 = 2.6;
/// Characters each one more than the one before: `12345678`.
const LONGEST_RUN: usize = 8;

/// Whether the part that chance should have made was made by a person: a known word, few different characters, a run.
fn is_placeholder(chance: &str) -> bool {
    let lower = chance.to_ascii_lowercase();
    let mut run = 1;
    let counts = lower.as_bytes().windows(2).any(|pair| {
        run = if pair[1] == pair[0].wrapping_add(1) {
            run + 1
        } else {
            1
        };
        run >= LONGEST_RUN
    });
    counts
        || PLACEHOLDERS.iter().any(|word| lower.contains(word))
        || chance.contains("${")
        || chance.contains("{{")
        || chance.starts_with('<')
        || entropy(chance) < LEAST_ENTROPY
}

/// Whether a value without a beginning of its own can only be random: letters and digits mixed throughout, no words.
fn is_random(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    if digits < 2 || letters < 4 {
        return false;
    }
    let is_hex = value.bytes().all(|b| b.is_ascii_hexdigit());
    if is_hex {
        // a commit's id or a checksum looks the same, so that only lengths of keys count
        return matches!(value.len(), 32 | 48 | 64) && entropy(value) >= 3.0;
    }
    let has_word = value
        .split(['-', '_', '.', '/', '=', '+', '~'])
        .any(|part| part.len() >= 4 && part.bytes().all(|b| b.is_ascii_alphabetic()));
    !has_word && entropy(value) >= 3.7
}

/// Whether the password of a URL was made by chance.
fn is_random_password(password: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| password.bytes().any(|b| kind(&b));
    has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && !password.contains(['$', '{', '<', '%'])
        && entropy(password) >= 3.0
}

/// Shannon entropy, in bits a character.
fn entropy(text: &str) -> f64 {
    let mut counts = [0u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let length = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / length;
            -share * share.log2()
        })
        .sum()
}

/// What begins a comment somewhere: the words count only after one of them.
const COMMENTS: &[&str] = &["<!--", "{#-", "{#", "#", "//", "/*", "--", ";", "%"];

/// Whether a line holds the comment that allows a secret; what stands before the comment.
fn allowance(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("secret:")?;
    let after = after.trim_start();
    let rest = after.strip_prefix("allow")?;
    if rest
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric())
    {
        return None;
    }
    let before = before.trim_end();
    COMMENTS
        .iter()
        .find_map(|opener| before.strip_suffix(opener))
}

fn is_allowed(source: &Source, at: usize) -> bool {
    let line = source.position(at).0 as usize;
    allowance(source.line(line)).is_some()
        || (line > 1
            && allowance(source.line(line - 1)).is_some_and(|before| before.trim().is_empty()))
}

#[cfg(test)]
mod tests;
