//! The form in which texts are compared: NFKC and lower case.

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

/// A query cut to [`MAX_QUERY`] bytes at a character boundary, folded.
pub fn fold_query(text: &str) -> String {
    let mut end = text.len().min(MAX_QUERY);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    fold(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_cases_are_one() {
        let nfd: String = "결제".nfd().collect();
        assert_eq!(fold(&nfd), fold("결제"));
        assert_eq!(fold("ＡＢＣ"), "abc");
        assert_eq!(fold("PayMents"), "payments");
        assert_eq!(fold_query(&"한".repeat(200)).chars().count(), 85);
    }
}
