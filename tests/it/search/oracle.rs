//! A naive search, written apart from the product's: what it finds, search must find, by the index and without.

use cuebook::catalog::Catalog;
use cuebook::prompt::Prompt;
use unicode_normalization::UnicodeNormalization;

const FIRST: &str = "ㄱ ㄲ ㄴ ㄷ ㄸ ㄹ ㅁ ㅂ ㅃ ㅅ ㅆ ㅇ ㅈ ㅉ ㅊ ㅋ ㅌ ㅍ ㅎ";
const SECOND: &str = "ㅏ ㅐ ㅑ ㅒ ㅓ ㅔ ㅕ ㅖ ㅗ ㅗㅏ ㅗㅐ ㅗㅣ ㅛ ㅜ ㅜㅓ ㅜㅔ ㅜㅣ ㅠ ㅡ ㅡㅣ ㅣ";
const THIRD: &str = "- ㄱ ㄲ ㄱㅅ ㄴ ㄴㅈ ㄴㅎ ㄷ ㄹ ㄹㄱ ㄹㅁ ㄹㅂ ㄹㅅ ㄹㅌ ㄹㅍ ㄹㅎ ㅁ ㅂ ㅂㅅ ㅅ ㅆ ㅇ ㅈ ㅊ ㅋ ㅌ ㅍ ㅎ";

fn nth(table: &'static str, n: u32) -> &'static str {
    table.split(' ').nth(n as usize).unwrap().trim_matches('-')
}

/// Composed, in lower case, `_` as `-`.
fn plain(text: &str) -> Vec<char> {
    let mut out = Vec::new();
    for word in text.split_inclusive(|c| ('ㄱ'..='ㅣ').contains(&c)) {
        let (word, jamo) = match word.chars().next_back() {
            Some(last) if ('ㄱ'..='ㅣ').contains(&last) => {
                (&word[..word.len() - last.len_utf8()], Some(last))
            }
            _ => (word, None),
        };
        let composed: String = word.nfkc().collect();
        out.extend(
            composed
                .to_lowercase()
                .nfkc()
                .map(|c| if c == '_' { '-' } else { c }),
        );
        out.extend(jamo);
    }
    out
}

/// Taken apart.
pub(super) fn keys(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text) {
        if ('가'..='힣').contains(&c) {
            let n = c as u32 - '가' as u32;
            out.push_str(nth(FIRST, n / 588));
            out.push_str(nth(SECOND, n / 28 % 21));
            out.push_str(nth(THIRD, n % 28));
        } else {
            // two keys type it
            match "ㄳㄵㄶㄺㄻㄼㄽㄾㄿㅀㅄㅘㅙㅚㅝㅞㅟㅢ".chars().position(|two| two == c) {
                Some(n) => out.push_str(
                    nth("ㄱㅅ ㄴㅈ ㄴㅎ ㄹㄱ ㄹㅁ ㄹㅂ ㄹㅅ ㄹㅌ ㄹㅍ ㄹㅎ ㅂㅅ ㅗㅏ ㅗㅐ ㅗㅣ ㅜㅓ ㅜㅔ ㅜㅣ ㅡㅣ", u32::try_from(n).unwrap()),
                ),
                None => out.push(c),
            }
        }
    }
    out
}

fn consonants(text: &str) -> String {
    let mut out = String::new();
    for c in plain(text) {
        if ('가'..='힣').contains(&c) {
            out.push_str(nth(FIRST, (c as u32 - '가' as u32) / 588));
        } else if !c.is_whitespace() {
            out.push_str(&keys(&c.to_string()));
        }
    }
    out
}

/// Whether a word that is taken apart has consonants and no vowel.
pub(super) fn are_consonants(word: &str) -> bool {
    word.chars().any(|c| ('ㄱ'..='ㅎ').contains(&c))
        && !word.chars().any(|c| ('ㅏ'..='ㅣ').contains(&c))
}

fn finds(heads: &[String], body: &str, query: &str) -> bool {
    query
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .all(|word| {
            let word = keys(word);
            let initials = are_consonants(&word);
            heads.iter().any(|text| keys(text).contains(&word))
                || body.lines().any(|line| keys(line).contains(&word))
                || initials && heads.iter().any(|text| consonants(text).contains(&word))
        })
}

fn heads(prompt: &Prompt) -> Vec<String> {
    let mut out = vec![prompt.name.to_string(), prompt.folder.to_string()];
    out.extend(prompt.title.clone());
    out.extend(prompt.description.clone());
    out.extend(prompt.tags.clone());
    for argument in &prompt.arguments {
        out.push(argument.name.to_string());
        out.extend(argument.description.clone());
    }
    out
}

/// Names of the prompts and URIs of the resources that a query without filters finds, sorted.
pub(super) fn found(catalog: &Catalog, query: &str) -> Vec<String> {
    let mut out = Vec::new();
    for prompt in catalog.list(None) {
        let body = prompt.text().splitn(3, "---\n").nth(2).unwrap();
        if finds(&heads(prompt), body, query) {
            out.push(prompt.name.to_string());
        }
    }
    let any = query.chars().any(|c| !c.is_whitespace() && !c.is_control());
    for resource in catalog.resources().iter().filter(|_| any) {
        let heads = [resource.uri.to_string(), resource.path.to_string()];
        if finds(&heads, resource.text().unwrap(), query) {
            out.push(resource.uri.to_string());
        }
    }
    out.sort();
    out
}
