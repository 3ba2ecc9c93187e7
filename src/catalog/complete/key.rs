//! Keys: texts as bytes whose prefixes are what someone has typed so far.
//!
//! A key is the folded text; its Hangul is spelled in jamo of one byte each, which UTF-8 has no character in, and each
//! syllable ends with [`MARK`]. So a prefix with its marks is a prefix of the text, and one without them is a prefix of
//! what was typed.

use unicode_normalization::char::is_combining_mark;

use super::super::text::{each_folded, spell};

/// Ends a syllable, or a jamo that stands alone.
pub(super) const MARK: u8 = 0x80;

/// The byte of `ㄱ`; the other compatibility jamo follow.
const FIRST_JAMO: u8 = 0x81;

/// The bytes of consonants and of vowels: `ㄱ` to `ㅎ`, `ㅏ` to `ㅣ`.
const CONSONANTS: std::ops::RangeInclusive<u8> = 0x81..=0x9E;
const VOWELS: std::ops::RangeInclusive<u8> = 0x9F..=0xB3;

/// Longest part of a value that is indexed, in bytes; four times the longest query, for values in decomposed form.
pub(super) const MAX_VALUE: usize = 1024;

/// Most words of a value that it is found by.
pub(super) const MAX_WORDS: usize = 16;

/// What a letter is, where words are not set apart by spaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Letter,
    Hangul,
    Hiragana,
    Katakana,
    /// Each is a word.
    Han,
}

fn kind(c: char) -> Kind {
    match c {
        '\u{3041}'..='\u{309F}' => Kind::Hiragana,
        '\u{30A1}'..='\u{30FF}' => Kind::Katakana,
        '\u{3400}'..='\u{4DBF}'
        | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}' => Kind::Han,
        c if c.is_alphanumeric() => Kind::Letter,
        _ => Kind::None,
    }
}

/// Adds the key of a text, and calls with the place of each word in it; the first is 0, whatever stands there.
pub(super) fn encode(text: &str, out: &mut Vec<u8>, mut word: impl FnMut(usize)) {
    let begin = out.len();
    let mut before = Kind::None;
    let mut jamo = String::new();
    word(0);
    each_folded(text, |c| {
        jamo.clear();
        let at = out.len();
        let kind = if spell(c, &mut jamo) {
            out.extend(
                jamo.chars()
                    .map(|c| FIRST_JAMO + u8::try_from(c as u32 - 'ㄱ' as u32).unwrap_or(0)),
            );
            out.push(MARK);
            Kind::Hangul
        } else {
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            if is_combining_mark(c) {
                before
            } else {
                kind(c)
            }
        };
        let starts = kind != Kind::None && (kind != before || kind == Kind::Han);
        if starts && at > begin && !is_combining_mark(c) {
            word(at - begin);
        }
        before = kind;
    });
}

/// The key of a text.
pub(super) fn key(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    encode(text, &mut out, |_| {});
    out
}

/// A key without its marks.
pub(super) fn unmarked(key: &[u8]) -> Vec<u8> {
    Symbols::new(key)
        .filter(|(bytes, _)| *bytes != [MARK])
        .flat_map(|(bytes, _)| bytes.iter().copied())
        .collect()
}

/// Adds each syllable's initial consonant, and all else but white space; false when there is no consonant.
pub(super) fn initials(key: &[u8], out: &mut Vec<u8>) -> bool {
    let mut some = false;
    // a vowel makes the rest of a syllable not initial
    let mut within = false;
    let mut first = true;
    for (bytes, c) in Symbols::new(key) {
        match *bytes {
            [MARK] => (within, first) = (false, true),
            [b] if CONSONANTS.contains(&b) => {
                if !within {
                    out.push(b);
                    some = true;
                }
                first = false;
            }
            [b] if VOWELS.contains(&b) => {
                // alone, it is kept: nothing has it as an initial
                if first {
                    out.push(b);
                }
                within = true;
                first = false;
            }
            _ if c.is_whitespace() => {}
            _ => out.extend_from_slice(bytes),
        }
    }
    some
}

/// Whether a key has Hangul, and whether all of it is consonants.
pub(super) fn hangul(key: &[u8]) -> (bool, bool) {
    let (mut some, mut consonants) = (false, true);
    for (bytes, _) in Symbols::new(key) {
        if let [b] = *bytes
            && b > MARK
        {
            some = true;
            consonants &= CONSONANTS.contains(&b);
        }
    }
    (some, some && consonants)
}

/// The characters of a key with their bytes; a jamo is its compatibility character, a mark is NUL.
pub(super) struct Symbols<'a> {
    key: &'a [u8],
}

impl<'a> Symbols<'a> {
    pub(super) fn new(key: &'a [u8]) -> Self {
        Self { key }
    }
}

/// How many bytes a character has, by its first.
pub(super) fn width(first: u8) -> usize {
    match first {
        0xF0.. => 4,
        0xE0.. => 3,
        0xC0.. => 2,
        _ => 1,
    }
}

/// What a byte that stands for a whole character means.
fn single(byte: u8) -> char {
    match byte {
        MARK => '\0',
        b if b >= FIRST_JAMO => {
            char::from_u32('ㄱ' as u32 + u32::from(b - FIRST_JAMO)).unwrap_or('\0')
        }
        b => b.into(),
    }
}

/// The byte that stands for a character in keys; none where it has several.
pub(super) fn byte_of(c: char) -> Option<u8> {
    if c.is_ascii() {
        return u8::try_from(c).ok();
    }
    let jamo = u32::from(c).checked_sub('ㄱ' as u32)?;
    let byte = u8::try_from(jamo).ok()?.checked_add(FIRST_JAMO)?;
    (single(byte) == c && width(byte) == 1).then_some(byte)
}

impl<'a> Iterator for Symbols<'a> {
    type Item = (&'a [u8], char);

    fn next(&mut self) -> Option<Self::Item> {
        let first = *self.key.first()?;
        let (bytes, rest) = self.key.split_at(width(first).min(self.key.len()));
        self.key = rest;
        let c = match bytes {
            [byte] => single(*byte),
            _ => std::str::from_utf8(bytes)
                .ok()
                .and_then(|text| text.chars().next())
                .unwrap_or('\u{FFFD}'),
        };
        Some((bytes, c))
    }
}
