//! What is not as it should be, a line each with what to do.

use crate::http::Tls;
use crate::records::Records;
use crate::registry::{Registry, Status};
use crate::upstream::Upstream;

/// What is wrong now; nothing when all is well.
pub fn messages(
    registry: &Registry,
    records: Option<&Records>,
    upstream: Option<&Upstream>,
    tls: Option<&Tls>,
) -> Vec<String> {
    let mut messages = of_status(&registry.snapshot().status);
    if let Some(error) = registry.counting_error() {
        messages.push(format!(
            "the versions of the prompts could not be counted: {error}; prompts are served and published, and it is \
             tried again by itself"
        ));
    }
    messages.extend(records.into_iter().flat_map(Records::messages));
    if let Some(upstream) = upstream {
        let url = &upstream.settings().remote.url;
        let error = upstream.status().error;
        messages.extend(error.map(|error| format!("following {url}: {error}")));
    }
    if let Some(tls) = tls {
        messages.extend(tls.trouble().into_iter().chain(tls.ending()));
    }
    messages
}

/// What is wrong with what is served.
fn of_status(now: &Status) -> Vec<String> {
    let mut messages = Vec::new();
    if let Some(error) = &now.read_error {
        messages.push(format!(
            "the last reading of the library failed, so what was read before is served: {error}; \
             it is tried again by itself, and the server's log says more"
        ));
    }
    if let (Some(tip), Some(served)) = (&now.tip, &now.served)
        && tip != served
    {
        messages.push(format!(
            "the tip of main, {tip}, does not pass the check, so the earlier commit {served} is served; \
             mend what `problems` lists and push again"
        ));
    }
    if now.partial {
        messages.push(
            "no revision of the library passes the check, so only its good prompts are served; \
             mend what `problems` lists"
                .to_owned(),
        );
    }
    messages
}
