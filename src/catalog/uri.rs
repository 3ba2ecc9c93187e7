//! Resource URIs: from a path under `resources/`, compared decoded, NFC, the first segment without case; and
//! URI templates (RFC 6570 level 1) that name families of them.

use std::fmt::Write as _;

use percent_encoding::percent_decode_str;
use unicode_normalization::UnicodeNormalization;

/// Longest URI that is looked at, in bytes.
const MAX_URI: usize = 2048;

/// Schemes that clients follow by themselves, so a library cannot own them.
const FOREIGN_SCHEMES: &[&str] = &[
    "http",
    "https",
    "file",
    "data",
    "javascript",
    "ftp",
    "ws",
    "wss",
    "blob",
    "about",
];

/// Why a word cannot be a scheme of a library, if it cannot.
pub fn scheme_fault(scheme: &str) -> Option<&'static str> {
    let mut bytes = scheme.bytes();
    if scheme.len() > 40
        || !bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        || !bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+.-".contains(&b))
    {
        return Some(
            "a scheme is a lower-case letter, then letters, digits, `+`, `.` or `-` (RFC 3986)",
        );
    }
    FOREIGN_SCHEMES
        .contains(&scheme)
        .then_some("clients follow this scheme by themselves")
}

/// The URI of a path below `resources/<scheme>/`, percent-encoded.
pub fn encode(scheme: &str, path: &str) -> String {
    let mut out = format!("{scheme}://");
    for byte in path.nfc().collect::<String>().bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$'()*,;:@&=+".contains(&byte) {
            out.push(byte.into());
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The form in which two URIs are the same; an error says why the text is no URI of a library.
pub fn key(uri: &str) -> Result<String, &'static str> {
    if uri.len() > MAX_URI {
        return Err("it is longer than 2048 bytes");
    }
    let (scheme, path) = uri
        .split_once("://")
        .ok_or("a resource URI is scheme://path")?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme_fault(&scheme).is_some() {
        return Err("no library can have this scheme");
    }
    let decoded = percent_decode_str(path)
        .decode_utf8()
        .map_err(|_| "its percent-encoding is not UTF-8")?;
    path_key(&scheme, &decoded)
}

/// The same for a scheme and a decoded path.
pub fn path_key(scheme: &str, path: &str) -> Result<String, &'static str> {
    if path.is_empty() {
        return Err("it has no path");
    }
    if path.chars().any(|c| c.is_control() || c == '\\') {
        return Err("its path holds a control character or a backslash");
    }
    let path: String = path.nfc().collect();
    if path.split('/').any(|s| matches!(s, "" | "." | "..")) {
        return Err("its path has an empty, `.` or `..` segment");
    }
    // the first segment stands where a URI has its host, which has no case
    let (first, rest) = match path.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path.as_str(), None),
    };
    let mut out = format!("{scheme}://{}", first.to_lowercase());
    if let Some(rest) = rest {
        out.push('/');
        out.push_str(rest);
    }
    Ok(out)
}

/// A URI template of level 1: literal text and `{name}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Variable(String),
}

impl UriTemplate {
    /// Parses `runbook://{service}`; an error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (scheme, _) = text.split_once("://").ok_or("a template is scheme://…")?;
        if let Some(fault) = scheme_fault(scheme) {
            return Err(format!("`{scheme}`: {fault}"));
        }
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((literal, after)) = rest.split_once('{') {
            if literal.contains('}') {
                return Err("a `}` without its `{`".into());
            }
            if literal.is_empty() && matches!(pieces.last(), Some(Piece::Variable(_))) {
                return Err("two variables must have text between them".into());
            }
            let (name, after) = after.split_once('}').ok_or("a `{` without its `}`")?;
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                return Err(format!(
                    "`{{{name}}}` is no variable: letters, digits and `_` (RFC 6570 level 1)"
                ));
            }
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal.into()));
            }
            pieces.push(Piece::Variable(name.into()));
            rest = after;
        }
        if rest.contains('}') {
            return Err("a `}` without its `{`".into());
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.into()));
        }
        let template = Self { pieces };
        if template.variables().next().is_none() {
            return Err("it has no {variable}".into());
        }
        Ok(template)
    }

    /// Its variables, in order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|p| match p {
            Piece::Variable(name) => Some(name.as_str()),
            Piece::Literal(_) => None,
        })
    }

    /// The scheme.
    pub fn scheme(&self) -> &str {
        match self.pieces.first() {
            Some(Piece::Literal(text)) => text.split_once("://").map_or("", |(scheme, _)| scheme),
            _ => "",
        }
    }

    /// The variables' values in a decoded URI, each one segment or a part of one; `None` when it does not fit.
    pub fn matches<'u>(&self, uri: &'u str) -> Option<Vec<(&str, &'u str)>> {
        let mut out = Vec::new();
        let mut rest = uri;
        let mut pieces = self.pieces.iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Literal(text) => rest = rest.strip_prefix(text.as_str())?,
                Piece::Variable(name) => {
                    let end = match pieces.peek() {
                        Some(Piece::Literal(next)) => rest.find(next.as_str())?,
                        _ => rest.len(),
                    };
                    let value = &rest[..end];
                    if value.is_empty() || value.contains('/') {
                        return None;
                    }
                    out.push((name.as_str(), value));
                    rest = &rest[end..];
                }
            }
        }
        rest.is_empty().then_some(out)
    }
}

/// A URI decoded for matching templates; the text itself where it cannot be decoded.
pub fn decoded(uri: &str) -> String {
    percent_decode_str(uri)
        .decode_utf8()
        .map_or_else(|_| uri.to_owned(), |text| text.nfc().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_resource_by_every_spelling() {
        let expected = key("runbook://결제/a b").unwrap();
        let nfd: String = "결제".nfd().collect();
        for spelling in [
            encode("runbook", "결제/a b"),
            format!("runbook://{nfd}/a%20b"),
            "RUNBOOK://결제/a b".into(),
        ] {
            assert_eq!(key(&spelling).as_ref(), Ok(&expected), "{spelling}");
        }
        assert_eq!(key("runbook://Payments"), key("runbook://payments"));
        assert_ne!(key("runbook://x/Payments"), key("runbook://x/payments"));
    }

    #[test]
    fn nothing_leaves_its_scheme() {
        for bad in [
            "runbook://../secret",
            "runbook://a/../../b",
            "runbook://%2e%2e/b",
            "runbook://a%2f..%2fb",
            "runbook:///etc/passwd",
            "runbook://a\0b",
            "runbook://a%00b",
            "runbook://",
            "runbook:a",
            "a",
            "file:///etc/passwd",
            "runbook://a\\..\\b",
            "runbook://%ff",
            "runbook://a//b",
            "runbook://./a",
            "http://x/y",
        ] {
            assert!(key(bad).is_err(), "{bad}");
        }
        // look-alikes are other names, not these
        assert_ne!(key("runbook://．．/b"), key("runbook://../b"));
        assert_ne!(key("runbook://a／b"), key("runbook://a/b"));
    }

    #[test]
    fn templates() {
        let t = UriTemplate::parse("test://template/{id}/data").unwrap();
        assert_eq!(
            t.matches("test://template/123/data"),
            Some(vec![("id", "123")])
        );
        assert_eq!(t.matches("test://template/1/2/data"), None);
        assert_eq!(t.matches("test://template//data"), None);
        let t = UriTemplate::parse("runbook://{service}").unwrap();
        assert_eq!(
            (t.scheme(), t.matches("runbook://결제")),
            ("runbook", Some(vec![("service", "결제")]))
        );
        for bad in [
            "runbook://x",
            "runbook://{a",
            "runbook://a}",
            "runbook://{a}{b}",
            "runbook://{+a}",
            "{a}",
            "http://{a}",
        ] {
            assert!(UriTemplate::parse(bad).is_err(), "{bad}");
        }
    }
}
