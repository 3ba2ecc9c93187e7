//! The form in which texts are searched: folded, Hangul as it is typed, and what is written without spaces made long enough
//! for an index of three characters in a row.

use unicode_normalization::char::canonical_combining_class;

use crate::catalog::text::{initials, jamo};

/// Says which forms the index holds; another number has them all made again.
pub(super) const RULE: i64 = 1;

/// What follows an ideograph, so that one of them alone is three characters.
const FILLER: &str = "\u{1}\u{2}";

/// A text in the form that is searched. Lines stay lines; `_` and `-` are one, as in names.
pub(super) fn form(text: &str) -> String {
    if text.is_ascii() {
        return text
            .chars()
            .map(|c| plain(c.to_ascii_lowercase()))
            .collect();
    }
    lengthened(&jamo(text))
}

/// A taken apart text with every ideograph made long enough.
fn lengthened(typed: &str) -> String {
    let mut out = String::with_capacity(typed.len() + typed.len() / 4);
    for c in typed.chars() {
        out.push(plain(c));
        if is_wide(c) {
            out.push_str(FILLER);
        }
    }
    out
}

fn plain(c: char) -> char {
    match c {
        '\n' => '\n',
        '_' => '-',
        c if c.is_control() || c.is_whitespace() => ' ',
        c => c,
    }
}

/// Ideographs, kana and pictures: a word of them is often one or two characters long. Hangul is taken apart already.
fn is_wide(c: char) -> bool {
    c >= '\u{2E80}' && !('ㄱ'..='ㅣ').contains(&c)
}

/// A text as its initial consonants, words joined; all else as [`form`] has it.
pub(super) fn initials_form(text: &str) -> String {
    lengthened(&initials(text))
}

/// A text's form, with the place in the text that each part of it comes from.
pub(super) struct Mapped {
    pub(super) form: String,
    /// Where a part begins in the form, and the part of the text it comes from; sorted.
    parts: Vec<(usize, usize, usize)>,
}

impl Mapped {
    /// Maps by `form`, or by what takes a text to its initial consonants.
    pub(super) fn new(text: &str, into: fn(&str) -> String) -> Self {
        let mut mapped = Self {
            form: String::with_capacity(text.len() * 2),
            parts: Vec::with_capacity(text.len()),
        };
        let mut start = 0;
        let ends = text
            .char_indices()
            .skip(1)
            .filter(|(_, c)| !joins(*c))
            .map(|(at, _)| at)
            .chain(std::iter::once(text.len()));
        for end in ends {
            let part = &text[start..end];
            mapped.parts.push((mapped.form.len(), start, end));
            mapped.form.push_str(&into(part));
            start = end;
        }
        mapped
    }

    /// The part of the text that a part of the form comes from.
    pub(super) fn original(&self, from: usize, to: usize) -> Option<std::ops::Range<usize>> {
        let part = |at: usize| {
            let after = self.parts.partition_point(|(begins, _, _)| *begins <= at);
            self.parts.get(after.checked_sub(1)?)
        };
        let (_, start, _) = part(from)?;
        let (_, _, end) = part(to.checked_sub(1)?)?;
        (start < end).then_some(*start..*end)
    }
}

/// Whether a character is one with what stands before it.
fn joins(c: char) -> bool {
    !c.is_ascii()
        && (canonical_combining_class(c) != 0
            || matches!(c, '\u{1160}'..='\u{11FF}' | '\u{D7B0}'..='\u{D7FF}' | '\u{FF9E}' | '\u{FF9F}'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_normalization::UnicodeNormalization;

    #[test]
    fn forms() {
        assert_eq!(form("Pay_Ments\tA\0b\nC"), "pay-ments a b\nc");
        assert_eq!(form("결제"), "ㄱㅕㄹㅈㅔ");
        assert_eq!(form("障"), "障\u{1}\u{2}");
        assert_eq!(form(&"결제é".nfd().collect::<String>()), form("결제é"));
        assert_eq!(initials_form("장애 障_x"), "ㅈㅇ障\u{1}\u{2}-x");
        assert_eq!(form("ＰＡＹ\u{3000}x"), "pay x");
    }

    #[test]
    fn a_part_of_a_form_comes_from_a_part_of_the_text() {
        for text in ["ab 결제장애 C", &"ab 결제장애 C".nfd().collect::<String>()] {
            let mapped = Mapped::new(text, form);
            assert_eq!(mapped.form, form(text));
            let word = form("제장");
            let at = mapped.form.find(&word).unwrap();
            let range = mapped.original(at, at + word.len()).unwrap();
            assert_eq!(text[range].nfc().collect::<String>(), "제장");
            // half a syllable is marked as the whole of it
            let at = mapped.form.find("ㅐ").unwrap();
            let range = mapped.original(at, at + "ㅐ".len()).unwrap();
            assert_eq!(text[range].nfc().collect::<String>(), "애");
        }
    }
}
