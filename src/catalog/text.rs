//! The forms in which texts are compared: NFKC and lower case; Hangul as it is typed; Hangul by its initial consonants.

use unicode_normalization::UnicodeNormalization;

/// Longest query that is looked at, in bytes.
pub const MAX_QUERY: usize = 256;

/// A text in the form that comparisons use.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

/// A text cut to some bytes at a character boundary.
pub(super) fn clip(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// A query cut to [`MAX_QUERY`] bytes at a character boundary.
pub fn clip_query(text: &str) -> &str {
    clip(text, MAX_QUERY)
}

/// A query cut to [`MAX_QUERY`] bytes at a character boundary, folded.
pub fn fold_query(text: &str) -> String {
    fold(clip_query(text))
}

/// A text folded, and its Hangul taken apart into the keys that type it (compatibility jamo), so that a syllable still
/// being typed is a prefix: 서우 of 서울.
pub fn jamo(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    each_folded(text, |c| {
        if !spell(c, &mut out) {
            out.push(c);
        }
    });
    out
}

/// Adds the keys that type a syllable or a jamo; false, with nothing added, for what is no Hangul.
pub(super) fn spell(c: char, out: &mut String) -> bool {
    if let Some((initial, vowel, last)) = syllable(c) {
        out.push(INITIALS[initial]);
        keys(VOWELS[vowel], out);
        if let Some(last) = last {
            keys(FINALS[last], out);
        }
        return true;
    }
    let hangul = written_jamo(c) || ('\u{1100}'..='\u{11C2}').contains(&c);
    let before = out.len();
    if hangul {
        keys(c, out);
        // an old letter that no keyboard has
        if out[before..].chars().any(|c| !written_jamo(c)) {
            out.truncate(before);
            return false;
        }
    }
    hangul
}

/// A text folded, each Hangul syllable as its initial consonant, without white space: ㄱㅈ for 결제.
pub fn initials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    each_folded(text, |c| match syllable(c) {
        Some((initial, _, _)) => out.push(INITIALS[initial]),
        None if c.is_whitespace() => {}
        None => keys(c, &mut out),
    });
    out
}

/// Whether someone types initial consonants: there are some, and no other Hangul.
pub fn are_initials(text: &str) -> bool {
    let mut some = false;
    let mut other = false;
    for c in jamo(text).chars() {
        some |= ('ㄱ'..='ㅎ').contains(&c);
        other |= ('ㅏ'..='ㅣ').contains(&c);
    }
    some && !other
}

const INITIALS: [char; 19] = [
    'ㄱ', 'ㄲ', 'ㄴ', 'ㄷ', 'ㄸ', 'ㄹ', 'ㅁ', 'ㅂ', 'ㅃ', 'ㅅ', 'ㅆ', 'ㅇ', 'ㅈ', 'ㅉ', 'ㅊ', 'ㅋ',
    'ㅌ', 'ㅍ', 'ㅎ',
];

const VOWELS: [char; 21] = [
    'ㅏ', 'ㅐ', 'ㅑ', 'ㅒ', 'ㅓ', 'ㅔ', 'ㅕ', 'ㅖ', 'ㅗ', 'ㅘ', 'ㅙ', 'ㅚ', 'ㅛ', 'ㅜ', 'ㅝ', 'ㅞ',
    'ㅟ', 'ㅠ', 'ㅡ', 'ㅢ', 'ㅣ',
];

const FINALS: [char; 27] = [
    'ㄱ', 'ㄲ', 'ㄳ', 'ㄴ', 'ㄵ', 'ㄶ', 'ㄷ', 'ㄹ', 'ㄺ', 'ㄻ', 'ㄼ', 'ㄽ', 'ㄾ', 'ㄿ', 'ㅀ', 'ㅁ',
    'ㅂ', 'ㅄ', 'ㅅ', 'ㅆ', 'ㅇ', 'ㅈ', 'ㅊ', 'ㅋ', 'ㅌ', 'ㅍ', 'ㅎ',
];

/// Initial consonant, vowel and final consonant of a syllable, as places in the tables above.
fn syllable(c: char) -> Option<(usize, usize, Option<usize>)> {
    let n = (c as usize)
        .checked_sub(0xAC00)
        .filter(|n| *n < 19 * 21 * 28)?;
    Some((n / 28 / 21, n / 28 % 21, (n % 28).checked_sub(1)))
}

/// The characters of a folded text, but compatibility jamo as they were written: NFKC would join them into syllables.
pub(super) fn each_folded(text: &str, mut each: impl FnMut(char)) {
    if text.is_ascii() {
        return text
            .bytes()
            .for_each(|b| each(b.to_ascii_lowercase().into()));
    }
    let mut rest = text;
    while let Some(at) = rest.find(written_jamo) {
        fold(&rest[..at]).chars().for_each(&mut each);
        let mut characters = rest[at..].chars();
        characters.next().into_iter().for_each(&mut each);
        rest = characters.as_str();
    }
    fold(rest).chars().for_each(each);
}

fn written_jamo(c: char) -> bool {
    ('ㄱ'..='ㅣ').contains(&c)
}

/// The keys that type a jamo, in any of its encodings; any other character as it is.
fn keys(c: char, out: &mut String) {
    let place = |first: u32| (c as u32 - first) as usize;
    let c = match c {
        // Unicode decomposes ㅀ and ㅄ to these old initials
        '\u{111A}' => 'ㅀ',
        '\u{1121}' => 'ㅄ',
        '\u{1100}'..='\u{1112}' => INITIALS[place(0x1100)],
        '\u{1161}'..='\u{1175}' => VOWELS[place(0x1161)],
        '\u{11A8}'..='\u{11C2}' => FINALS[place(0x11A8)],
        other => other,
    };
    out.push_str(match c {
        'ㄳ' => "ㄱㅅ",
        'ㄵ' => "ㄴㅈ",
        'ㄶ' => "ㄴㅎ",
        'ㄺ' => "ㄹㄱ",
        'ㄻ' => "ㄹㅁ",
        'ㄼ' => "ㄹㅂ",
        'ㄽ' => "ㄹㅅ",
        'ㄾ' => "ㄹㅌ",
        'ㄿ' => "ㄹㅍ",
        'ㅀ' => "ㄹㅎ",
        'ㅄ' => "ㅂㅅ",
        'ㅘ' => "ㅗㅏ",
        'ㅙ' => "ㅗㅐ",
        'ㅚ' => "ㅗㅣ",
        'ㅝ' => "ㅜㅓ",
        'ㅞ' => "ㅜㅔ",
        'ㅟ' => "ㅜㅣ",
        'ㅢ' => "ㅡㅣ",
        one => return out.push(one),
    });
}

#[cfg(test)]
mod tests;
