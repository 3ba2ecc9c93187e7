//! Settings of what clients connect to: TLS, proxies, and what one client may cost.

use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;

use super::Config;
use super::keys::{Key, number};
use crate::http::{
    Allowed, Entrance, ForwardedHeader, Limits, Proxies, RateSettings, Rates, StreamSettings,
    Streams, Tls,
};

/// How clients connect.
#[derive(Debug, Clone)]
pub struct NetworkConfig {
    /// Connections at a time.
    pub max_connections: usize,
    /// Connections of one address at a time.
    pub max_connections_per_address: usize,
    /// How many requests a client may make.
    pub rates: RateSettings,
    /// How many streams a client may have.
    pub streams: StreamSettings,
    /// Networks of the proxies whose word counts.
    pub trusted_proxies: Vec<IpNet>,
    /// The header in which they name the client.
    pub forwarded_header: ForwardedHeader,
    /// The certificate's file, PEM.
    pub certificate: Option<PathBuf>,
    /// Its key's file, PEM.
    pub key: Option<PathBuf>,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            max_connections: Limits::default().connections,
            max_connections_per_address: Limits::default().connections_per_address,
            rates: RateSettings::default(),
            streams: StreamSettings::default(),
            trusted_proxies: Vec::new(),
            forwarded_header: ForwardedHeader::default(),
            certificate: None,
            key: None,
        }
    }
}

impl Config {
    /// The certificate, where the server speaks TLS itself.
    pub fn tls(&self) -> anyhow::Result<Option<Arc<Tls>>> {
        match (&self.network.certificate, &self.network.key) {
            (None, None) => Ok(None),
            (Some(certificate), Some(key)) => Ok(Some(Arc::new(Tls::load(certificate, key)?))),
            (Some(_), None) => {
                anyhow::bail!("tls.certificate is set and tls.key is not; set both, or neither")
            }
            (None, Some(_)) => {
                anyhow::bail!("tls.key is set and tls.certificate is not; set both, or neither")
            }
        }
    }

    /// Who may come in, and from where they come.
    pub fn entrance(&self, tls: Option<Arc<Tls>>) -> anyhow::Result<Entrance> {
        let network = &self.network;
        Ok(Entrance {
            allowed: Allowed::new(self.public_url.as_deref())?,
            proxies: Proxies::new(network.trusted_proxies.clone(), network.forwarded_header),
            rates: Rates::new(&RateSettings {
                exempt_loopback: !self.access.enabled,
                ..network.rates.clone()
            }),
            streams: Streams::new(StreamSettings {
                exempt_loopback: !self.access.enabled,
                ..network.streams.clone()
            }),
            tls,
            ..Entrance::default()
        })
    }

    /// What connections may cost.
    pub fn connection_limits(&self) -> Limits {
        Limits {
            connections: self.network.max_connections,
            connections_per_address: self.network.max_connections_per_address,
            exempt: self.network.trusted_proxies.clone(),
            ..Limits::default()
        }
    }
}

/// Every setting of them, in the order in which they are shown.
pub(super) static KEYS: &[Key] = &[
    Key {
        name: "tls.certificate",
        meaning: "file of the certificate with its chain, PEM; read again when it changes",
        set: |c, value| {
            c.network.certificate = file(value);
            Ok(())
        },
        get: |c| shown(c.network.certificate.as_ref()),
    },
    Key {
        name: "tls.key",
        meaning: "file of the certificate's key, PEM, without a passphrase",
        set: |c, value| {
            c.network.key = file(value);
            Ok(())
        },
        get: |c| shown(c.network.key.as_ref()),
    },
    Key {
        name: "http.trusted_proxies",
        meaning: "addresses and networks of proxies that name the client, e.g. 10.0.0.0/8",
        set: |c, value| {
            c.network.trusted_proxies = networks(value)?;
            Ok(())
        },
        get: |c| {
            let names: Vec<String> = c
                .network
                .trusted_proxies
                .iter()
                .map(ToString::to_string)
                .collect();
            names.join(",")
        },
    },
    Key {
        name: "http.forwarded_header",
        meaning: "header in which they name it: x-forwarded-for or forwarded; the other is not read",
        set: |c, value| {
            c.network.forwarded_header = match value {
                "x-forwarded-for" => ForwardedHeader::XForwardedFor,
                "forwarded" => ForwardedHeader::Forwarded,
                _ => return Err("must be x-forwarded-for or forwarded".into()),
            };
            Ok(())
        },
        get: |c| {
            match c.network.forwarded_header {
                ForwardedHeader::XForwardedFor => "x-forwarded-for",
                ForwardedHeader::Forwarded => "forwarded",
            }
            .into()
        },
    },
    Key {
        name: "http.max_connections",
        meaning: "connections at a time",
        set: |c, value| {
            c.network.max_connections = number(value, 1, 1_000_000)?;
            Ok(())
        },
        get: |c| c.network.max_connections.to_string(),
    },
    Key {
        name: "http.max_connections_per_address",
        meaning: "connections of one address at a time; 0: as many as there are",
        set: |c, value| {
            c.network.max_connections_per_address = number(value, 0, 1_000_000)?;
            Ok(())
        },
        get: |c| c.network.max_connections_per_address.to_string(),
    },
    Key {
        name: "http.requests_per_minute",
        meaning: "requests of one address in a minute; 0: no limit",
        set: |c, value| {
            c.network.rates.per_minute = number(value, 0, 100_000_000)?;
            Ok(())
        },
        get: |c| c.network.rates.per_minute.to_string(),
    },
    Key {
        name: "http.burst",
        meaning: "requests of one address at once",
        set: |c, value| {
            c.network.rates.burst = number(value, 1, 100_000_000)?;
            Ok(())
        },
        get: |c| c.network.rates.burst.to_string(),
    },
    Key {
        name: "http.actor_requests_per_minute",
        meaning: "requests of one actor in a minute, from all addresses; 0: no limit",
        set: |c, value| {
            c.network.rates.actor_per_minute = number(value, 0, 100_000_000)?;
            Ok(())
        },
        get: |c| c.network.rates.actor_per_minute.to_string(),
    },
    Key {
        name: "http.actor_burst",
        meaning: "requests of one actor at once",
        set: |c, value| {
            c.network.rates.actor_burst = number(value, 1, 100_000_000)?;
            Ok(())
        },
        get: |c| c.network.rates.actor_burst.to_string(),
    },
    Key {
        name: "mcp.max_streams_per_caller",
        meaning: "open streams of one actor; 0: as many as there are",
        set: |c, value| {
            c.network.streams.per_actor = number(value, 0, 1_000_000)?;
            Ok(())
        },
        get: |c| c.network.streams.per_actor.to_string(),
    },
    Key {
        name: "mcp.max_streams_per_address",
        meaning: "open streams of one address; 0: as many as there are",
        set: |c, value| {
            c.network.streams.per_address = number(value, 0, 1_000_000)?;
            Ok(())
        },
        get: |c| c.network.streams.per_address.to_string(),
    },
];

fn file(value: &str) -> Option<PathBuf> {
    (!value.is_empty()).then(|| value.into())
}

fn shown(path: Option<&PathBuf>) -> String {
    path.map_or_else(String::new, |path| path.display().to_string())
}

/// Networks and single addresses, parted by commas.
fn networks(value: &str) -> Result<Vec<IpNet>, String> {
    value
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(|name| {
            name.parse::<IpNet>()
                .or_else(|_| name.parse::<std::net::IpAddr>().map(IpNet::from))
                .map(|network| network.trunc())
                .map_err(|_| {
                    let name: String = name.chars().take(80).collect();
                    format!("must be addresses and networks such as 10.0.0.0/8 or ::1, and `{name}` is neither")
                })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_addresses_are_read_and_nothing_else() {
        let check = |value: &str, expected: Option<&str>| {
            let read = networks(value).ok().map(|networks| {
                let names: Vec<String> = networks.iter().map(ToString::to_string).collect();
                names.join(",")
            });
            assert_eq!(read.as_deref(), expected, "{value}");
        };
        check("", Some(""));
        check("10.1.2.3/8, ::1", Some("10.0.0.0/8,::1/128"));
        check("192.0.2.1", Some("192.0.2.1/32"));
        check("*", None);
        check("10.0.0.0/33", None);
        check("proxy.example.com", None);
    }

    #[test]
    fn a_certificate_without_a_key_is_refused() {
        let mut config = Config::default();
        config.network.certificate = Some("cert.pem".into());
        let error = config.tls().unwrap_err().to_string();
        assert!(error.contains("tls.key is not"), "{error}");
        config.network.key = Some("nowhere/key.pem".into());
        let error = config.tls().unwrap_err().to_string();
        assert!(
            error.contains("cert.pem") && error.contains("tls.certificate"),
            "{error}"
        );
        assert_eq!(error.lines().count(), 1);
    }
}
