//! Where a request comes from: the connection's other end, or the client that a trusted proxy names.
//!
//! A forwarded address is a claim of whoever wrote the header. It counts only on a connection from a proxy that the
//! settings name, only in the one header that this proxy is known to write, and only back to the first address that
//! is no trusted proxy: what stands before it was written by that client.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::{HeaderMap, HeaderName};
use ipnet::IpNet;

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    /// Its address.
    pub(super) address: SocketAddr,
    /// Whether the connection is under TLS.
    pub(super) encrypted: bool,
}

/// Where a request comes from: what limits, records, the audit and budgets count by. A request over the Unix socket
/// of a data directory has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client's address; an IPv4 address that came as IPv6 is IPv4 again.
    pub ip: IpAddr,
    /// Whether the client's connection is under TLS, here or at a trusted proxy.
    pub encrypted: bool,
}

/// The header in which trusted proxies name the client. Only this one is read: a proxy passes on what a client has
/// written into the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For` and `X-Forwarded-Proto`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");

/// The proxies whose word counts.
#[derive(Debug, Default)]
pub struct Proxies {
    trusted: Vec<IpNet>,
    header: ForwardedHeader,
    /// Whether it was said that a proxy is not named.
    warned: AtomicBool,
}

impl Proxies {
    /// Proxies of these networks, which write this header.
    pub fn new(trusted: Vec<IpNet>, header: ForwardedHeader) -> Self {
        Self {
            trusted,
            header,
            warned: AtomicBool::new(false),
        }
    }

    /// Whether an address is that of a trusted proxy.
    pub fn trusts(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.trusted.iter().any(|network| network.contains(&ip))
    }

    /// The client of a request.
    pub(super) fn client(&self, peer: Peer, headers: &HeaderMap) -> ClientAddress {
        let direct = ClientAddress {
            ip: peer.address.ip().to_canonical(),
            encrypted: peer.encrypted,
        };
        if !self.trusts(direct.ip) {
            if direct.ip.is_loopback() && headers.contains_key(X_FORWARDED_FOR) {
                self.warn(direct.ip);
            }
            return direct;
        }
        let (chain, scheme) = match self.header {
            ForwardedHeader::XForwardedFor => (
                entries(headers, &X_FORWARDED_FOR),
                entries(headers, &X_FORWARDED_PROTO).pop(),
            ),
            ForwardedHeader::Forwarded => {
                let elements = entries(headers, &FORWARDED);
                let scheme = elements.last().and_then(|last| parameter(last, "proto"));
                let chain = elements.iter().map(|element| {
                    // an element that names nobody ends the chain
                    parameter(element, "for").unwrap_or("unknown")
                });
                (chain.collect(), scheme)
            }
        };
        let mut ip = direct.ip;
        for entry in chain.into_iter().rev() {
            let Some(named) = address(entry) else {
                break;
            };
            ip = named;
            if !self.trusts(ip) {
                break;
            }
        }
        ClientAddress {
            ip,
            encrypted: scheme.map_or(direct.encrypted, |scheme| {
                scheme.eq_ignore_ascii_case("https")
            }),
        }
    }

    /// Says once that a proxy of this machine is not named: all of its clients count as one.
    fn warn(&self, ip: IpAddr) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "requests come from a proxy at {ip} that http.trusted_proxies does not name, so all of its clients count as one"
            );
        }
    }
}

/// The entries of a list in all headers of a name, first to last, trimmed; commas in quotes do not part them.
fn entries<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Vec<&'a str> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|value| parts(value.to_str().unwrap_or("unknown"), ','))
        .filter(|entry| !entry.is_empty())
        .collect()
}

/// What a separator parts, trimmed; one in quotes parts nothing.
fn parts(text: &str, separator: char) -> Vec<&str> {
    let (mut out, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if c == separator && !quoted => {
                out.push(text[start..i].trim());
                start = i + c.len_utf8();
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out
}

/// A parameter of an element of `Forwarded`, without its quotes.
fn parameter<'a>(element: &'a str, wanted: &str) -> Option<&'a str> {
    parts(element, ';').into_iter().find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let value = value.trim();
        let plain = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        name.trim()
            .eq_ignore_ascii_case(wanted)
            .then(|| plain.unwrap_or(value))
    })
}

/// An address with or without a port; IPv6 with a port, and always in `Forwarded`, is in brackets.
fn address(entry: &str) -> Option<IpAddr> {
    let bare = entry.strip_prefix('[').and_then(|e| e.strip_suffix(']'));
    let ip = match bare.unwrap_or(entry).parse::<IpAddr>() {
        Ok(ip) => ip,
        Err(_) => entry.parse::<SocketAddr>().ok()?.ip(),
    };
    Some(ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn proxies(header: ForwardedHeader) -> Proxies {
        let networks = ["10.0.0.0/8", "127.0.0.1/32", "2001:db8:1::/48"];
        Proxies::new(networks.map(|n| n.parse().unwrap()).to_vec(), header)
    }

    #[track_caller]
    fn check(
        header: ForwardedHeader,
        peer: &str,
        headers: &[(&'static str, &'static str)],
        expected: (&str, bool),
    ) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let peer = Peer {
            address: SocketAddr::new(peer.parse().unwrap(), 1234),
            encrypted: false,
        };
        let client = proxies(header).client(peer, &map);
        assert_eq!(
            (client.ip, client.encrypted),
            (expected.0.parse().unwrap(), expected.1),
            "{headers:?}"
        );
    }

    #[test]
    fn what_anybody_else_says_of_itself_is_not_believed() {
        for header in [ForwardedHeader::XForwardedFor, ForwardedHeader::Forwarded] {
            let claims = [
                ("x-forwarded-for", "203.0.113.1"),
                ("x-forwarded-proto", "https"),
                ("forwarded", "for=203.0.113.1;proto=https"),
            ];
            check(header, "192.0.2.7", &claims, ("192.0.2.7", false));
            check(header, "::ffff:192.0.2.7", &claims, ("192.0.2.7", false));
        }
    }

    #[test]
    fn the_rightmost_address_that_is_no_proxy_is_the_client() {
        let x = |peer, list: &[(&'static str, &'static str)], expected| {
            check(ForwardedHeader::XForwardedFor, peer, list, expected);
        };
        x("10.0.0.1", &[], ("10.0.0.1", false));
        x(
            "10.0.0.1",
            &[("x-forwarded-for", "203.0.113.1")],
            ("203.0.113.1", false),
        );
        x(
            "::ffff:10.0.0.1",
            &[("x-forwarded-for", "203.0.113.1")],
            ("203.0.113.1", false),
        );
        // the client has written the first one
        x(
            "10.0.0.1",
            &[("x-forwarded-for", "198.51.100.9, 203.0.113.1, 10.2.3.4")],
            ("203.0.113.1", false),
        );
        x(
            "10.0.0.1",
            &[
                ("x-forwarded-for", "198.51.100.9"),
                ("x-forwarded-for", "203.0.113.1"),
            ],
            ("203.0.113.1", false),
        );
        x(
            "10.0.0.1",
            &[("x-forwarded-for", "203.0.113.1:4711")],
            ("203.0.113.1", false),
        );
        x(
            "10.0.0.1",
            &[("x-forwarded-for", "[2001:db8:2::1]:4711")],
            ("2001:db8:2::1", false),
        );
        x(
            "10.0.0.1",
            &[("x-forwarded-for", "2001:db8:2::1")],
            ("2001:db8:2::1", false),
        );
        x(
            "10.0.0.1",
            &[("x-forwarded-for", "10.9.9.9, 10.8.8.8")],
            ("10.9.9.9", false),
        );
        // what cannot be read ends the chain at the proxy that has taken it
        x(
            "10.0.0.1",
            &[("x-forwarded-for", "203.0.113.1, unknown")],
            ("10.0.0.1", false),
        );
        x(
            "10.0.0.1",
            &[("x-forwarded-for", "203.0.113.1, evil, 10.2.3.4")],
            ("10.2.3.4", false),
        );
    }

    #[test]
    fn the_scheme_is_the_last_that_a_trusted_proxy_has_written() {
        let x = |peer, list: &[(&'static str, &'static str)], expected| {
            check(ForwardedHeader::XForwardedFor, peer, list, expected);
        };
        x(
            "10.0.0.1",
            &[("x-forwarded-proto", "https")],
            ("10.0.0.1", true),
        );
        x(
            "10.0.0.1",
            &[("x-forwarded-proto", "https, http")],
            ("10.0.0.1", false),
        );
        x(
            "10.0.0.1",
            &[("x-forwarded-proto", "HTTPS")],
            ("10.0.0.1", true),
        );
    }

    #[test]
    fn only_the_header_that_the_proxy_writes_is_read() {
        let both = [
            ("x-forwarded-for", "203.0.113.1"),
            ("x-forwarded-proto", "http"),
            (
                "forwarded",
                "for=\"[2001:db8:2::1]:80\";by=10.0.0.1;proto=https",
            ),
        ];
        check(
            ForwardedHeader::XForwardedFor,
            "10.0.0.1",
            &both,
            ("203.0.113.1", false),
        );
        check(
            ForwardedHeader::Forwarded,
            "10.0.0.1",
            &both,
            ("2001:db8:2::1", true),
        );
        let rfc = |value, expected| {
            check(
                ForwardedHeader::Forwarded,
                "10.0.0.1",
                &[("forwarded", value)],
                expected,
            );
        };
        rfc(
            "For=198.51.100.9, for=203.0.113.1; Proto=https",
            ("203.0.113.1", true),
        );
        rfc(
            "for=198.51.100.9, for=\"203.0.113.1:99\", for=10.1.1.1",
            ("203.0.113.1", false),
        );
        rfc("for=203.0.113.1, for=_hidden", ("10.0.0.1", false));
        rfc("for=203.0.113.1, proto=https", ("10.0.0.1", true));
        // a quoted comma hides nothing
        rfc(
            "for=203.0.113.1;x=\"a, for=198.51.100.9\"",
            ("203.0.113.1", false),
        );
    }
}
