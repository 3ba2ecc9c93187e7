//! Which addresses a webhook may be at: public ones, unless its setting says otherwise.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Hook;

/// Whether an address is one of this machine, of a network behind it, or of nobody.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || (a == 100 && (64..128).contains(&b))
                || v4.octets()[..3] == [192, 0, 0]
                || (a == 198 && (b == 18 || b == 19))
                || a >= 240
        }
        IpAddr::V6(v6) => {
            let parts = v6.segments();
            // an address of the older kind in other clothes: mapped, NAT64, 6to4
            let within = v6.to_ipv4_mapped().or_else(|| {
                let two = |a: u16, b: u16| {
                    let ([a, b], [c, d]) = (a.to_be_bytes(), b.to_be_bytes());
                    Ipv4Addr::new(a, b, c, d)
                };
                match parts {
                    [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => Some(two(a, b)),
                    _ => None,
                }
            });
            within.is_some_and(|v4| is_private(IpAddr::V4(v4)))
                || v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
        }
    }
}

/// Finds the public addresses of a name, and only those, at every request: a name may come to mean another address.
struct Public;

impl Resolve for Public {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let all = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = all.filter(|at| !is_private(at.ip())).collect();
            if public.is_empty() {
                return Err(format!(
                    "{name} has no public address; set private = true for a receiver in your own network"
                )
                .into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// What calls a receiver.
pub(super) fn client(hook: &Hook, timeout: Duration) -> Result<Client, String> {
    // a second call in one process finds the first one's choice, which is the same
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("cuebook/", env!("CARGO_PKG_VERSION")))
        // where an answer leads is not what was set
        .redirect(reqwest::redirect::Policy::none())
        .timeout(timeout);
    if hook.url.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    if hook.private {
        builder = builder.no_proxy();
    } else {
        builder = builder.dns_resolver(Arc::new(Public));
    }
    builder.build().map_err(|error| reason(&error))
}

/// Why a request failed, to its cause.
pub(super) fn reason(error: &reqwest::Error) -> String {
    let mut out = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        out = error.to_string();
        cause = error.source();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_public_or_private() {
        let check = |text: &str, expected: bool| {
            assert_eq!(is_private(text.parse().unwrap()), expected, "{text}");
        };
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ] {
            check(private, true);
        }
        for public in [
            "1.1.1.1",
            "100.128.0.1",
            "2606:4700:4700::1111",
            "::ffff:1.1.1.1",
        ] {
            check(public, false);
        }
    }
}
