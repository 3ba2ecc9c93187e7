//! What `cuebook.toml` asks of a change before it is published: how many must have approved which files. Pure.

use unicode_normalization::UnicodeNormalization as _;

/// Most approvals that one rule can ask for.
pub const MAX_REQUIRED: u32 = 20;

/// An `[[approval]]` of `cuebook.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Files it is about.
    pub paths: Vec<PathPattern>,
    /// How many must approve, from 1.
    pub required: u32,
    /// Whose approval counts: names, and `group:<name>`; everybody's who may review where it is empty.
    pub reviewers: Vec<String>,
    /// Whether a prompt may go back to an earlier version without approval.
    pub rollback: bool,
}

impl Approval {
    /// Whether a file falls under it.
    pub fn covers(&self, path: &str) -> bool {
        self.paths.iter().any(|pattern| pattern.matches(path))
    }
}

/// A pattern of paths: `*` stands for any characters of one name, `**` for any number of folders. Names are compared as
/// the library compares them, without case and in one Unicode form, so that no other spelling of a path gets around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern {
    text: String,
    parts: Vec<String>,
}

fn folded(text: &str) -> String {
    text.nfc()
        .collect::<String>()
        .to_lowercase()
        .nfc()
        .collect()
}

impl PathPattern {
    /// Reads a pattern; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it is empty".into());
        }
        if text.starts_with('/') {
            return Err(
                "it begins with a slash; paths are written from the top of the library".into(),
            );
        }
        if text.ends_with('/') {
            return Err(format!(
                "it ends in a slash; `{text}**` is everything below"
            ));
        }
        let parts: Vec<String> = text.split('/').map(folded).collect();
        if parts.iter().any(|part| matches!(&**part, "" | "." | "..")) {
            return Err("it has an empty part, `.` or `..`".into());
        }
        if parts.iter().any(|part| part.contains("**") && part != "**") {
            return Err("`**` stands for whole folders, alone between slashes".into());
        }
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a path is one of those it stands for.
    pub fn matches(&self, path: &str) -> bool {
        let path = folded(path);
        let names: Vec<&str> = path.split('/').collect();
        // where the last `**` was met, and from which name on it is to be tried next
        let (mut part, mut name) = (0, 0);
        let mut again: Option<(usize, usize)> = None;
        while name < names.len() {
            match self.parts.get(part) {
                Some(any) if any == "**" => {
                    again = Some((part, name));
                    part += 1;
                    continue;
                }
                Some(one) if fits(one, names[name]) => {
                    part += 1;
                    name += 1;
                    continue;
                }
                _ => {}
            }
            let Some((any, from)) = again else {
                return false;
            };
            again = Some((any, from + 1));
            part = any + 1;
            name = from + 1;
        }
        self.parts[part..].iter().all(|rest| rest == "**")
    }
}

/// Whether a name fits a part of a pattern, in which `*` stands for any characters.
fn fits(part: &str, name: &str) -> bool {
    let (part, name): (Vec<char>, Vec<char>) = (part.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while n < name.len() {
        match part.get(p) {
            Some('*') => {
                again = Some((p, n));
                p += 1;
            }
            Some(c) if *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((star, from)) = again else {
                    return false;
                };
                again = Some((star, from + 1));
                p = star + 1;
                n = from + 1;
            }
        }
    }
    part[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_paths() {
        let check = |pattern: &str, path: &str, expected: bool| {
            let parsed = PathPattern::parse(pattern).unwrap();
            assert_eq!(parsed.matches(path), expected, "{pattern} {path}");
        };
        check("prompts/sre/**", "prompts/sre/after.md", true);
        check("prompts/sre/**", "prompts/sre/deep/er/after.md", true);
        check("prompts/sre/**", "prompts/sre2/after.md", false);
        check("prompts/sre/**", "prompts/after.md", false);
        check("prompts/**/after.md", "prompts/after.md", true);
        check("prompts/**/after.md", "prompts/a/b/after.md", true);
        check("prompts/**/after.md", "prompts/a/b/before.md", false);
        check("**", "anything/at/all", true);
        check("**/a/**/b", "x/a/y/a/z/b", true);
        check("**/a/**/b", "x/b/y/a", false);
        check("labels.toml", "labels.toml", true);
        check("labels.toml", "prompts/labels.toml", false);
        check("prompts/*/on-call-*.md", "prompts/sre/on-call-eu.md", true);
        check(
            "prompts/*/on-call-*.md",
            "prompts/sre/x/on-call-eu.md",
            false,
        );
        check("*a*b*", "xxaxxbxx", true);
        check("*a*b*", "xxbxxaxx", false);
        // spelled another way it is the same
        check("resources/Runbook/**", "resources/runbook/x.md", true);
        check("resources/가/**", "resources/\u{1100}\u{1161}/x.md", true);
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for wrong in [
            "",
            "/prompts/x",
            "prompts/",
            "a//b",
            "../x",
            "a/./b",
            "a/b**",
        ] {
            assert!(PathPattern::parse(wrong).is_err(), "{wrong}");
        }
        assert!(
            PathPattern::parse("prompts/sre/")
                .unwrap_err()
                .contains("prompts/sre/**")
        );
    }

    proptest::proptest! {
        /// The matcher against the plain definition, by recursion.
        #[test]
        fn it_matches_what_the_definition_says(
            pattern in "(a|b|\\*|\\*\\*)(/(a|b|\\*|\\*\\*|a\\*)){0,5}",
            path in "(a|b|ab)(/(a|b|ab)){0,5}",
        ) {
            fn plain(parts: &[&str], names: &[&str]) -> bool {
                match (parts.split_first(), names.split_first()) {
                    (None, None) => true,
                    (Some((&"**", rest)), _) => {
                        (0..=names.len()).any(|skip| plain(rest, &names[skip..]))
                    }
                    (None, Some(_)) | (Some(_), None) => false,
                    (Some((part, rest)), Some((name, names))) => {
                        let fits = match part.strip_suffix('*') {
                            Some(start) => name.starts_with(start),
                            None => part == name,
                        };
                        fits && plain(rest, names)
                    }
                }
            }
            let parts: Vec<&str> = pattern.split('/').collect();
            let names: Vec<&str> = path.split('/').collect();
            let parsed = PathPattern::parse(&pattern).unwrap();
            proptest::prop_assert_eq!(parsed.matches(&path), plain(&parts, &names));
        }
    }
}
