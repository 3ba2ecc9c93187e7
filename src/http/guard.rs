//! Host and Origin: a web page that a colleague has open must not reach this server through the
//! colleague's browser, whatever name it makes a resolver give (DNS rebinding).

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderValue};

/// The hosts and origins that are served: loopback, and the public URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Scheme and authority of the public URL, lower case, without a default port.
    public: Option<(String, String)>,
}

/// Why a text cannot be the public URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an http or https URL such as https://prompts.example.com")]
pub struct PublicUrlError(String);

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no Host, or more than one.
    #[error("the request needs exactly one Host header")]
    NoHost,
    /// The Host is not ours.
    #[error("host `{0}` is not served here; set public_url to the address clients use")]
    Host(String),
    /// The Origin is not ours.
    #[error("origin `{0}` may not call this server; set public_url to the address clients use")]
    Origin(String),
}

impl Allowed {
    /// Loopback, and a public URL where there is one.
    pub fn new(public_url: Option<&str>) -> Result<Self, PublicUrlError> {
        let Some(url) = public_url else {
            return Ok(Self::default());
        };
        let wrong = || PublicUrlError(url.chars().take(200).collect());
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let scheme = scheme.to_ascii_lowercase();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if !matches!(&*scheme, "http" | "https")
            || authority.contains('@')
            || split(authority).is_none()
        {
            return Err(wrong());
        }
        let authority = normal(&scheme, authority);
        Ok(Self {
            public: Some((scheme, authority)),
        })
    }

    /// Whether a request with these headers is served.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::NoHost);
        };
        let host = text(host);
        if host.is_empty() {
            return Err(Refusal::NoHost);
        }
        if !self.serves_host(host) {
            return Err(Refusal::Host(shown(host)));
        }
        for origin in headers.get_all(ORIGIN) {
            let origin = text(origin);
            if !self.serves_origin(origin) {
                return Err(Refusal::Origin(shown(origin)));
            }
        }
        Ok(())
    }

    /// Whether a request names the public URL, and that neither this machine nor a port: what a browser keeps of a name counts
    /// for every port of it, also for those that are not ours.
    pub(super) fn is_whole_host(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(HOST).map(text);
        let has_port = |authority: &str| {
            authority
                .rsplit(']')
                .next()
                .is_some_and(|s| s.contains(':'))
        };
        let public = self.public.as_ref();
        host.is_some_and(|host| !is_loopback(host) && self.serves_host(host))
            && public.is_some_and(|(_, authority)| !has_port(authority))
    }

    fn serves_host(&self, host: &str) -> bool {
        is_loopback(host)
            || self.public.as_ref().is_some_and(|(scheme, authority)| {
                // Behind a proxy that keeps the name and drops the port, or the other way round.
                normal(scheme, host) == *authority
            })
    }

    fn serves_origin(&self, origin: &str) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else {
            return false;
        };
        let scheme = scheme.to_ascii_lowercase();
        if !matches!(&*scheme, "http" | "https") {
            return false;
        }
        is_loopback(authority)
            || self.public.as_ref().is_some_and(|(wanted, public)| {
                *wanted == scheme && normal(&scheme, authority) == *public
            })
    }
}

/// What can be read of a header; anything else matches nothing.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("\u{fffd}")
}

fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Host and port of an authority; none when it is not one.
fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, rest) = rest.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            (&authority[..address.len() + 2], rest)
        }
        None => match authority.find(':') {
            Some(colon) => (&authority[..colon], &authority[colon..]),
            None => (authority, ""),
        },
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if host.is_empty() || !(host.starts_with('[') || host.bytes().all(plain)) {
        return None;
    }
    if port.is_empty() {
        return Some((host, None));
    }
    let digits = port.strip_prefix(':')?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((host, Some(digits.parse().ok()?)))
}

fn is_loopback(authority: &str) -> bool {
    let Some((host, _)) = split(authority) else {
        return false;
    };
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    match host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(address) => address
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| address.is_loopback()),
        None => host
            .parse::<Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback()),
    }
}

/// Lower case, without the default port of a scheme.
fn normal(scheme: &str, authority: &str) -> String {
    let authority = authority.to_ascii_lowercase();
    let default = if scheme == "https" { ":443" } else { ":80" };
    authority
        .strip_suffix(default)
        .map_or_else(|| authority.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(public: Option<&str>, host: &str, origin: Option<&str>, expected: bool) {
        let allowed = Allowed::new(public).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(host).unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        assert_eq!(
            allowed.check(&headers).is_ok(),
            expected,
            "{host} {origin:?}"
        );
    }

    #[test]
    fn loopback_by_any_of_its_names_and_any_port() {
        for host in [
            "localhost",
            "LOCALHOST:8400",
            "127.0.0.1:1",
            "127.1.2.3",
            "[::1]",
            "[::1]:8400",
        ] {
            check(None, host, None, true);
            check(None, host, Some(&format!("http://{host}")), true);
        }
    }

    #[test]
    fn nothing_else() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1.",
            "0.0.0.0",
            "10.0.0.1",
            "[::]",
            "[::ffff:127.0.0.1]",
            "localhost:",
            "localhost:99999",
            "localhost:80:80",
            "localhost/x",
            "a@localhost",
            "2130706433",
            "127.1",
            "0x7f.0.0.1",
        ] {
            check(None, host, None, false);
            check(None, "localhost", Some(&format!("http://{host}")), false);
        }
        for origin in [
            "null",
            "",
            "localhost",
            "file://",
            "ftp://localhost",
            "chrome-extension://abc",
            "https://",
        ] {
            check(None, "localhost", Some(origin), false);
        }
    }

    #[test]
    fn the_public_url() {
        let public = Some("https://Prompts.example.com/");
        check(
            public,
            "prompts.example.com",
            Some("https://prompts.example.com"),
            true,
        );
        check(
            public,
            "PROMPTS.example.com:443",
            Some("https://prompts.example.com:443"),
            true,
        );
        check(public, "127.0.0.1:8400", None, true);
        check(
            public,
            "prompts.example.com",
            Some("http://prompts.example.com"),
            false,
        );
        check(public, "prompts.example.com:8443", None, false);
        check(
            public,
            "prompts.example.com",
            Some("https://other.example.com"),
            false,
        );
        for url in [
            "prompts.example.com",
            "ftp://x",
            "https://",
            "https://a@b",
            "https://a b",
        ] {
            assert!(Allowed::new(Some(url)).is_err(), "{url}");
        }
    }

    #[test]
    fn one_host_exactly() {
        let mut headers = HeaderMap::new();
        assert_eq!(Allowed::default().check(&headers), Err(Refusal::NoHost));
        headers.append(HOST, HeaderValue::from_static("localhost"));
        headers.append(HOST, HeaderValue::from_static("localhost"));
        assert_eq!(Allowed::default().check(&headers), Err(Refusal::NoHost));
    }
}
