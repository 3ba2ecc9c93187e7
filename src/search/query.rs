//! What someone typed: words that must all be found, and filters. Nothing in it is syntax but a filter that is known.

use crate::catalog::text::{are_initials, clip_query, fold};

use super::form::form;

/// Words of a query that are looked at.
const MAX_WORDS: usize = 16;

/// A query that was read. Every text is one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// All of them must be found.
    pub words: Vec<Word>,
    /// All of them must hold.
    pub filters: Vec<Filter>,
}

/// A word in the form that is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Found anywhere.
    pub form: Box<str>,
    /// Whether it is initial consonants, which are also found among those of names, titles, tags, descriptions and
    /// arguments.
    pub initials: bool,
}

/// What a prompt must be; a resource passes none of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filter {
    /// `folder:sre`: in this folder or one below it.
    Folder(String),
    /// `tag:incident`: has this tag.
    Tag(String),
    /// `arg:service`: declares this argument.
    Argument(String),
    /// `label:production`: `labels.toml` gives it this label.
    Label(String),
}

impl Query {
    /// Reads a query, cut to [`crate::catalog::text::MAX_QUERY`] bytes and 16 words.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        let ends = |c: char| c.is_whitespace() || c.is_control();
        for token in clip_query(text).split(ends) {
            if let Some(filter) = filter(token) {
                query.filters.push(filter);
                continue;
            }
            for word in form(token).split(' ').filter(|word| !word.is_empty()) {
                if query.words.len() < MAX_WORDS && !query.words.iter().any(|w| &*w.form == word) {
                    query.words.push(Word {
                        form: word.into(),
                        initials: are_initials(word),
                    });
                }
            }
        }
        query
    }
}

/// A filter; none where the word before the colon is no filter's, or nothing comes after it.
fn filter(token: &str) -> Option<Filter> {
    let (key, value) = token.split_once(':')?;
    let value = fold(value);
    if value.is_empty() {
        return None;
    }
    match &*fold(key) {
        "folder" => {
            let folder = value.trim_matches('/');
            (!folder.is_empty()).then(|| Filter::Folder(folder.to_owned()))
        }
        "tag" => Some(Filter::Tag(value)),
        "arg" => Some(Filter::Argument(value)),
        "label" => Some(Filter::Label(value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let query = Query::parse(text);
        query.words.iter().map(|w| w.form.to_string()).collect()
    }

    #[test]
    fn filters_are_told_from_text() {
        let query = Query::parse("pay folder:/SRE/ tag:인시던트 ARG:Service label:production");
        assert_eq!(
            query.filters,
            [
                Filter::Folder("sre".into()),
                Filter::Tag("인시던트".into()),
                Filter::Argument("service".into()),
                Filter::Label("production".into()),
            ]
        );
        assert_eq!(words("pay folder:/SRE/"), ["pay"]);
        assert_eq!(
            words("http://x tag: a:b : folder:/ \"tag:x\""),
            ["http://x", "tag:", "a:b", ":", "folder:/", "\"tag:x\""]
        );
    }

    #[test]
    fn syntax_of_other_things_is_text() {
        assert_eq!(
            words("code-review c++ \" * AND -x NEAR(a\0b {x} ^y"),
            [
                "code-review",
                "c++",
                "\"",
                "*",
                "and",
                "-x",
                "near(a",
                "b",
                "{x}",
                "^y"
            ]
        );
        assert_eq!(words(&"x ".repeat(5000)), ["x"]);
        assert_eq!(words(&"긴".repeat(5000)).len(), 1);
        let many: String = (0..90).map(|n| format!("{n} ")).collect();
        assert_eq!(words(&many).len(), MAX_WORDS);
        assert_eq!(words(" \u{3000}\t\n"), Vec::<String>::new());
    }

    #[test]
    fn consonants_alone_are_initials() {
        let initials = |text: &str| Query::parse(text).words[0].initials;
        assert!(initials("ㄱㅈ"));
        assert!(!initials("결"));
        assert!(!initials("pay"));
    }
}
