//! What follows a push that was accepted: main is served, the audit has an entry, the person is told.

use std::sync::Arc;

use super::wire::{Answer, Question};
use super::{Gate, lines, who};
use crate::access::Actor;
use crate::git::MAIN;
use crate::git::history::NOTHING;
use crate::records::audit;
use crate::store::AuditEntry;

impl Gate {
    /// The refs have moved: what main says now is served before this returns.
    pub(super) async fn published(self: &Arc<Self>, question: Question) -> Answer {
        let mut answer = Answer {
            accepted: true,
            ..Answer::default()
        };
        let (actor, origin) = who(&question);
        for update in &question.updates {
            // told when it was opened or revised
            if update.name.starts_with("refs/proposals/") {
                continue;
            }
            let some = |id: &String| (id != NOTHING).then(|| id.clone());
            let is_main = update.name == MAIN;
            let deed = question.deed.as_ref();
            let action = deed.map_or(if is_main { "publish" } else { "push" }, |d| &*d.action);
            let general = self.entry(&actor, &origin, &update.new);
            let entry = AuditEntry {
                action: action.into(),
                subject: Some(deed.map_or_else(|| update.name.clone(), |d| d.subject.clone())),
                old_commit: some(&update.old),
                new_commit: some(&update.new),
                main: some(&update.new).filter(|_| is_main),
                detail: deed
                    .and_then(|deed| deed.reason.clone())
                    .or(general.detail.clone()),
                ..general
            };
            if is_main && update.new != NOTHING {
                // what is served does not wait for a row
                let (audited, lines) =
                    tokio::join!(self.audited(entry), self.serve(update.new.clone(), &actor));
                answer.lines.extend(lines);
                answer.lines.extend(audited);
                continue;
            }
            answer.lines.extend(self.audited(entry).await);
            if update.name.starts_with("refs/heads/") && update.new != NOTHING {
                let next = match self.repository.read_ref(MAIN) {
                    Ok(None) => {
                        "main, which is served, does not exist yet: git push origin HEAD:main"
                    }
                    _ => "git push origin HEAD:refs/for/main proposes it",
                };
                answer.lines.push(format!(
                    "{} is kept here and not served; {next}",
                    crate::prompt::visible::visible(&update.name)
                ));
            }
        }
        answer
    }

    /// What all entries of the gate say.
    pub(super) fn entry(&self, actor: &Actor, origin: &str, commit: &str) -> AuditEntry {
        AuditEntry {
            at: crate::clock::unix_millis(),
            actor: actor.to_string(),
            origin: Some(origin.to_owned()),
            detail: audit::author(&self.repository, commit),
            ..AuditEntry::default()
        }
    }

    /// Appends to the audit; a line for the person where that has to wait.
    pub(super) async fn audited(&self, entry: AuditEntry) -> Option<String> {
        let records = self.records.as_ref()?;
        let appended = records.audit().append(entry).await;
        appended.err().map(|not_yet| format!("warning: {not_yet}"))
    }

    async fn serve(self: &Arc<Self>, commit: String, actor: &Actor) -> Vec<String> {
        let gate = self.clone();
        let refreshed = tokio::task::spawn_blocking(move || gate.registry.refresh()).await;
        match refreshed {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "a publish could not be served");
                return vec!["main has moved, but the server could not read it yet; it tries again by itself".into()];
            }
            Err(error) => {
                tracing::error!(%error, "the refresh after a push failed");
                return vec![
                    "main has moved, but the refresh failed; the server tries again by itself"
                        .into(),
                ];
            }
        }
        let snapshot = self.registry.snapshot();
        let status = &snapshot.status;
        if status.served != status.tip {
            return vec![format!(
                "main has moved, but it does not pass the check and {} is served",
                status
                    .served
                    .as_deref()
                    .map_or("nothing", |id| id.get(..7).unwrap_or(id))
            )];
        }
        let Some(checked) = self.found(&commit, actor) else {
            return vec![format!("served at {}/mcp", self.settings.url)];
        };
        let (generation, changes) = (snapshot.generation, &snapshot.changes);
        let told = [
            changes.prompts,
            changes.resources_list,
            changes.resources_content,
        ]
        .contains(&generation);
        let clients = self.clients.as_ref().filter(|_| told).map(|count| count());
        lines::published(&checked, clients, &self.settings.url)
    }
}
