//! `[[webhook]]` of `config.toml`: who is told of what is done.

use std::net::IpAddr;

use reqwest::Url;
use serde::Deserialize;

use crate::webhooks::{EVENTS, Event, Format, Hook, is_private};

use super::keys::secret_text;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: String,
    secret: Option<String>,
    secret_file: Option<String>,
    events: Option<Vec<String>>,
    format: Option<String>,
    #[serde(default)]
    private: bool,
}

/// Reads the receivers; what is wrong with one is said of its number, from 1.
pub(super) fn read(value: toml::Value, problems: &mut Vec<String>) -> Vec<Hook> {
    let toml::Value::Array(entries) = value else {
        problems.push("`webhook` is a list: [[webhook]]".into());
        return Vec::new();
    };
    let mut out = Vec::new();
    for (index, entry) in entries.into_iter().enumerate() {
        let read = entry
            .try_into::<Entry>()
            .map_err(|error| {
                error
                    .message()
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
            .and_then(hook);
        match read {
            Ok(hook) => out.push(hook),
            Err(fault) => problems.push(format!("webhook {}: {fault}", index + 1)),
        }
    }
    out
}

fn hook(entry: Entry) -> Result<Hook, String> {
    let url = Url::parse(&entry.url).map_err(|error| format!("`url` {error}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err("`url` must begin with https:// or http://".into());
    }
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let inside = host == "localhost" || host.parse::<IpAddr>().is_ok_and(is_private);
    if inside && !entry.private {
        return Err(format!(
            "`url` names {host}, which is in your own network; set private = true if that is meant"
        ));
    }
    let secret = match (entry.secret, entry.secret_file) {
        (Some(_), Some(_)) => return Err("set `secret` or `secret_file`, not both".into()),
        (Some(secret), None) => Some(secret),
        (None, Some(path)) => {
            Some(secret_text(&path).map_err(|fault| format!("`secret_file` {fault}"))?)
        }
        (None, None) => None,
    };
    let format = match entry.format.as_deref() {
        None | Some("json") => Format::Json,
        Some("slack") => Format::Slack,
        Some(_) => return Err("`format` must be json or slack".into()),
    };
    if secret.as_deref().is_none_or(str::is_empty) && format == Format::Json {
        return Err("set `secret`, by which the receiver knows that it is you".into());
    }
    let events = match entry.events {
        None => EVENTS.to_vec(),
        Some(names) => names
            .iter()
            .map(|name| {
                Event::parse(name).ok_or_else(|| {
                    let all: Vec<&str> = EVENTS.iter().map(|event| event.as_str()).collect();
                    let shown: String = name.chars().take(40).collect();
                    format!("there is no event `{shown}`; there are {}", all.join(", "))
                })
            })
            .collect::<Result<_, _>>()?,
    };
    Ok(Hook {
        url,
        secret,
        events,
        format,
        private: entry.private,
    })
}
