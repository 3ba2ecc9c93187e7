//! Text of a library as a terminal can show it: it must not act on what an author wrote.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_width::UnicodeWidthChar;

/// `text` with everything a terminal would act on, or hide, replaced by something to look at.
///
/// Control characters become their pictures (`␛`), invisible and direction-changing ones their number
/// (`<U+202E>`). Joiners and variation selectors stay: emoji and Indic scripts need them.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    text.chars()
        .fold(String::with_capacity(text.len()), |mut all, character| {
            all.push_str(&shown(character));
            all
        })
        .into()
}

/// One character as something to look at.
pub fn shown(character: char) -> Cow<'static, str> {
    if is_plain(character) {
        return character.to_string().into();
    }
    let picture = match character {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(character)),
        '\x7f' => Some('␡'),
        _ => None,
    };
    if let Some(picture) = picture {
        return picture.to_string().into();
    }
    let mut number = String::new();
    // Writing to a String cannot fail.
    let _ = write!(number, "<U+{:04X}>", u32::from(character));
    number.into()
}

/// Whether a character can be written to a terminal as it is.
fn is_plain(character: char) -> bool {
    match character {
        // Zero-width space, direction marks, embeddings and isolates, line separators, BOM, soft hyphen.
        '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => false,
        _ => character.width().is_some() && !character.is_control(),
    }
}
