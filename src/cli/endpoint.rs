//! The address of a Cuebook server, as people type it and as clients need it.

use anyhow::{Context, bail, ensure};
use reqwest::Url;

/// Where `cuebook serve` listens unless told otherwise.
pub const DEFAULT: &str = "http://127.0.0.1:8400/mcp";

/// Reads the address of a server's MCP endpoint.
///
/// `localhost:8400` and `https://cuebook.example/` are completed to `http://localhost:8400/mcp` and
/// `https://cuebook.example/mcp`. Anything but http and https, and an address with a password in it, is
/// refused: a token belongs in `CUEBOOK_TOKEN`.
pub fn parse(text: &str) -> anyhow::Result<Url> {
    let text = text.trim();
    let full = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let mut url = Url::parse(&full)
        .with_context(|| format!("`{text}` is not an address; give one like {DEFAULT}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        bail!(
            "`{text}`: a Cuebook server speaks http or https, not {}",
            url.scheme()
        );
    }
    ensure!(
        url.username().is_empty() && url.password().is_none(),
        "an address must not hold a user or password; put the token in CUEBOOK_TOKEN"
    );
    url.set_fragment(None);
    if url.path() == "/" {
        url.set_path("/mcp");
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_completed() {
        for (typed, full) in [
            ("http://127.0.0.1:8400/mcp", "http://127.0.0.1:8400/mcp"),
            ("http://127.0.0.1:8400", "http://127.0.0.1:8400/mcp"),
            (" https://cuebook.example/ ", "https://cuebook.example/mcp"),
            ("localhost:8400", "http://localhost:8400/mcp"),
            ("cuebook.example/mcp/sre", "http://cuebook.example/mcp/sre"),
            ("http://[::1]:8400/mcp/sre#x", "http://[::1]:8400/mcp/sre"),
        ] {
            assert_eq!(parse(typed).unwrap().as_str(), full, "{typed}");
        }
    }

    #[test]
    fn what_is_no_server_is_refused() {
        for bad in [
            "",
            "ftp://x/mcp",
            "http://",
            "http://user:secret@x/mcp",
            "file:///etc/passwd",
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
