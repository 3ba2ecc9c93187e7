//! What a receiver is told: an entry of the audit as JSON, or as a line for Slack.

use serde::Serialize;

use crate::store::AuditEntry;

/// What can be heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A proposal was opened.
    Opened,
    /// A proposal has a new revision.
    Revised,
    /// A verdict was given.
    Reviewed,
    /// A proposal was merged.
    Merged,
    /// A proposal was closed or opened again.
    Closed,
    /// Main was moved by a push, an edit or a followed repository.
    Published,
    /// A prompt went back to an earlier version.
    RolledBack,
    /// A label was moved.
    Labelled,
}

/// Every event.
pub const EVENTS: [Event; 8] = [
    Event::Opened,
    Event::Revised,
    Event::Reviewed,
    Event::Merged,
    Event::Closed,
    Event::Published,
    Event::RolledBack,
    Event::Labelled,
];

impl Event {
    /// As it is set and sent, e.g. `proposal.merged`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Opened => "proposal.opened",
            Self::Revised => "proposal.revised",
            Self::Reviewed => "proposal.reviewed",
            Self::Merged => "proposal.merged",
            Self::Closed => "proposal.closed",
            Self::Published => "publish",
            Self::RolledBack => "rollback",
            Self::Labelled => "label",
        }
    }

    /// Reads what `as_str` writes.
    pub fn parse(text: &str) -> Option<Self> {
        EVENTS.into_iter().find(|event| event.as_str() == text)
    }

    /// What an entry of the audit is; none where nobody is told of it.
    pub fn of(entry: &AuditEntry) -> Option<Self> {
        Some(match &*entry.action {
            "propose" => Self::Opened,
            "revise" => Self::Revised,
            "approve" | "request-changes" => Self::Reviewed,
            "merge" => Self::Merged,
            "close" | "reopen" => Self::Closed,
            "publish" | "follow" => Self::Published,
            "restore" => Self::RolledBack,
            "promote" | "unlabel" => Self::Labelled,
            _ => return None,
        })
    }
}

/// What a message looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// All that is known, as JSON.
    Json,
    /// `{"text": …}`, which Slack, Mattermost and others take.
    Slack,
}

/// What a receiver is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The same for every try.
    pub id: String,
    /// What happened.
    #[serde(serialize_with = "name")]
    pub event: Event,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Who did it.
    pub actor: String,
    /// One word of the audit.
    pub action: String,
    /// To what.
    pub subject: Option<String>,
    /// The number of the proposal.
    pub proposal: Option<i64>,
    /// Its title.
    pub title: Option<String>,
    /// The commit before.
    pub old_commit: Option<String>,
    /// The commit after.
    pub new_commit: Option<String>,
    /// What else there is to say.
    pub detail: Option<String>,
    /// The page about it.
    pub url: String,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the shape that serde calls"
)]
fn name<S: serde::Serializer>(event: &Event, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(event.as_str())
}

/// The number of the proposal that an entry is about.
pub fn proposal(entry: &AuditEntry) -> Option<i64> {
    entry
        .subject
        .as_deref()?
        .strip_prefix("proposal ")?
        .parse()
        .ok()
}

impl Message {
    /// The message of an entry; `url` is where people reach the server.
    pub fn new(event: Event, entry: &AuditEntry, title: Option<String>, url: &str) -> Self {
        let proposal = proposal(entry);
        Self {
            id: format!("{:016x}", getrandom::u64().unwrap_or_default()),
            event,
            at: entry.at,
            actor: entry.actor.clone(),
            action: entry.action.clone(),
            subject: entry.subject.clone(),
            proposal,
            title,
            old_commit: entry.old_commit.clone(),
            new_commit: entry.new_commit.clone(),
            detail: entry.detail.clone(),
            url: match proposal {
                Some(number) => format!("{url}/proposals/{number}"),
                None => format!("{url}/activity"),
            },
        }
    }

    /// The body of the request.
    pub fn body(&self, format: Format) -> Vec<u8> {
        let body = match format {
            Format::Json => serde_json::to_vec(self),
            Format::Slack => serde_json::to_vec(&serde_json::json!({ "text": self.line() })),
        };
        body.unwrap_or_default()
    }

    /// A line of Slack's markup, in which what people wrote is text: no link, no mention.
    fn line(&self) -> String {
        let did = match (&*self.action, self.event) {
            ("request-changes", _) => "asked for changes of",
            ("approve", _) => "approved",
            ("close", _) => "closed",
            ("reopen", _) => "reopened",
            ("unlabel", _) => "took a label off:",
            (_, Event::Opened) => "opened",
            (_, Event::Revised) => "revised",
            (_, Event::Merged) => "merged",
            (_, Event::RolledBack) => "took back to an earlier version:",
            (_, Event::Labelled) => "moved a label:",
            _ => "published to",
        };
        let mut out = format!("{} {did} ", escaped(&self.actor));
        let subject = self.subject.as_deref().unwrap_or("main");
        let subject = subject.strip_prefix("refs/heads/").unwrap_or(subject);
        out.push_str(&format!("<{}|{}>", self.url, escaped(subject)));
        if let Some(title) = &self.title {
            out.push_str(&format!(": {}", escaped(title)));
        }
        out
    }
}

/// Text in which nothing is markup: <https://docs.slack.dev/messaging/formatting-message-text#escaping>.
fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_wrote_is_text_to_slack() {
        let entry = AuditEntry {
            actor: "mina".into(),
            action: "request-changes".into(),
            subject: Some("proposal 7".into()),
            ..AuditEntry::default()
        };
        let title = Some("<!channel> & <https://evil.example|x>\nmore".to_owned());
        let message = Message::new(Event::Reviewed, &entry, title, "https://cue.example");
        let body: serde_json::Value = serde_json::from_slice(&message.body(Format::Slack)).unwrap();
        assert_eq!(
            body["text"],
            "mina asked for changes of <https://cue.example/proposals/7|proposal 7>: \
             &lt;!channel&gt; &amp; &lt;https://evil.example|x&gt; more"
        );
    }

    #[test]
    fn events_are_read_as_they_are_written() {
        for event in EVENTS {
            assert_eq!(Event::parse(event.as_str()), Some(event));
        }
        assert_eq!(Event::parse("everything"), None);
    }
}
