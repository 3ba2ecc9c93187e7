//! Who a render is for, as far as it matters here: what one caller costs must not be felt by another.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

/// Everything with the same one has one budget and one turn.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(Key);

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Local,
    Network(IpAddr),
    Actor(Arc<str>),
    Builds,
}

impl Caller {
    /// Whoever sits at this machine: its terminal, its standard input.
    pub fn local() -> Self {
        Self(Key::Local)
    }

    /// A client's address: an IPv4 address, or the network that an IPv6 address is one of 2⁶⁴ of.
    pub fn address(address: IpAddr) -> Self {
        let network = match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        };
        Self(Key::Network(network))
    }

    /// Somebody who has said who they are, from wherever they ask.
    pub fn actor(name: Arc<str>) -> Self {
        Self(Key::Actor(name))
    }

    /// The checks of builds, which nobody asks for by a request.
    pub(super) fn builds() -> Self {
        Self(Key::Builds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_caller_and_an_address_is_one_however_it_is_written() {
        let caller = |text: &str| Caller::address(text.parse().unwrap());
        assert_eq!(caller("2001:db8::1"), caller("2001:db8::ffff:2"));
        assert_ne!(caller("2001:db8::1"), caller("2001:db8:0:1::1"));
        assert_eq!(caller("::ffff:127.0.0.2"), caller("127.0.0.2"));
        assert_ne!(caller("127.0.0.2"), caller("127.0.0.3"));
    }
}
