//! What each URL takes, at the least. A URL without a row is served to nobody; a test walks them.

use super::{Action, Actor};

/// What a request must have before its handler sees it; what a path of the library takes is asked there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing: it shows nothing of the library, or proves who asks in another way.
    Nothing,
    /// Somebody who has said who they are.
    Known,
    /// Who may do this at some path.
    Somewhere(Action),
    /// Who may do this to the whole library.
    Everywhere(Action),
}

impl Need {
    /// Whether an actor has it.
    pub fn met_by(self, actor: &Actor) -> bool {
        match self {
            Self::Nothing => true,
            Self::Known => actor.is_known(),
            Self::Somewhere(action) => actor.may_somewhere(action),
            Self::Everywhere(action) => actor.may(action, ""),
        }
    }
}

/// A row: a URL as the router has it, and what it takes for methods that only read and for all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// As the router has it, e.g. `/api/v1/prompts/{name}/label`.
    pub path: &'static str,
    /// For GET and HEAD.
    pub read: Need,
    /// For everything else.
    pub write: Need,
}

const fn row(path: &'static str, read: Need, write: Need) -> Route {
    Route { path, read, write }
}

const fn both(path: &'static str, need: Need) -> Route {
    row(path, need, need)
}

const READ: Need = Need::Somewhere(Action::Read);
const PROPOSE: Need = Need::Somewhere(Action::Propose);
const PUBLISH: Need = Need::Somewhere(Action::Publish);
const ADMIN: Need = Need::Everywhere(Action::Administer);

/// Every URL of the server.
pub static ROUTES: &[Route] = &[
    // operations: says nothing of the library to who may not see it
    both("/healthz", Need::Nothing),
    both("/readyz", Need::Nothing),
    both("/.well-known/oauth-protected-resource", Need::Nothing),
    both("/.well-known/oauth-protected-resource/mcp", Need::Nothing),
    // its sender signs what it sends
    both("/hooks/upstream", Need::Nothing),
    // a permission that is missing there is an error of the protocol
    both("/mcp", Need::Known),
    both("/mcp/", Need::Known),
    both("/mcp/{*folder}", Need::Known),
    // git cannot serve a part of a repository; what a push may change is asked for each path by the gate
    both("/library.git", Need::Known),
    both("/library.git/", Need::Known),
    both("/library.git/info/refs", Need::Known),
    both(
        "/library.git/git-upload-pack",
        Need::Everywhere(Action::Read),
    ),
    both("/library.git/git-receive-pack", PROPOSE),
    both("/library.git/{*rest}", Need::Known),
    both("/", READ),
    both("/prompts/{name}", READ),
    both("/prompts/{name}/complete", READ),
    both("/prompts/{name}/versions", READ),
    both("/prompts/{name}/diff", READ),
    both("/prompts/{name}/blame", READ),
    both("/prompts/{name}/restore", PUBLISH),
    both(
        "/prompts/{name}/promote",
        Need::Somewhere(Action::MoveLabel),
    ),
    both("/connect", Need::Known),
    both("/activity", READ),
    // the same for everyone: what pages load, and the language of a browser
    both("/assets/{file}", Need::Nothing),
    both("/favicon.ico", Need::Nothing),
    both("/language", Need::Nothing),
    // who signs in has not said yet who they are
    both("/login", Need::Nothing),
    both("/login/oidc", Need::Nothing),
    both("/login/oidc/callback", Need::Nothing),
    both("/login/oidc/logout", Need::Nothing),
    both("/logout", Need::Nothing),
    both("/setup", Need::Nothing),
    both("/settings", Need::Known),
    both("/settings/people", ADMIN),
    row("/edit/{*path}", READ, PROPOSE),
    both("/new", PROPOSE),
    both("/editor/words", PROPOSE),
    both("/editor/file", READ),
    both("/editor/place", PROPOSE),
    both("/editor/check", PROPOSE),
    both("/editor/draft", PROPOSE),
    // how the API is asked, which is the same for everyone
    both("/api", Need::Nothing),
    both("/api/v1/openapi.json", Need::Nothing),
    both("/api/v1/search", READ),
    both("/api/v1/preview", PROPOSE),
    both("/api/v1/changes", PUBLISH),
    both("/api/v1/prompts", READ),
    both("/api/v1/prompts/{name}", READ),
    both("/api/v1/prompts/{name}/versions", READ),
    both("/api/v1/prompts/{name}/diff", READ),
    both("/api/v1/prompts/{name}/blame", READ),
    both("/api/v1/prompts/{name}/revert", PUBLISH),
    both(
        "/api/v1/prompts/{name}/label",
        Need::Somewhere(Action::MoveLabel),
    ),
    both("/api/v1/activity", READ),
    both("/api/v1/published", READ),
    both("/api/v1/usage", READ),
    both("/api/v1/usage/erase-values", ADMIN),
    both("/api/v1/deliveries", READ),
    both("/api/v1/access/me", Need::Known),
    both("/api/v1/access/people", ADMIN),
    both("/api/v1/access/people/{name}", ADMIN),
    both("/api/v1/access/people/{name}/invite", ADMIN),
    both("/api/v1/access/groups", ADMIN),
    both("/api/v1/access/grants", ADMIN),
    both("/api/v1/access/grants/revoke", ADMIN),
    // one's own; an admin's everybody's
    both("/api/v1/access/tokens", Need::Known),
    both("/api/v1/access/tokens/{id}/revoke", Need::Known),
    both("/api/v1/access/sessions", Need::Known),
    both("/api/v1/access/sessions/{id}/revoke", Need::Known),
    both("/api/v1/audit", ADMIN),
    both("/api/v1/audit/export", ADMIN),
    both("/api/v1/verify", ADMIN),
    both("/api/v1/reindex", ADMIN),
    both("/proposals", READ),
    row("/proposals/{number}", READ, PROPOSE),
    row("/proposals/{number}/conflicts", READ, PROPOSE),
    both("/inbox", READ),
    both("/api/v1/inbox", READ),
    row("/api/v1/proposals", READ, PROPOSE),
    row("/api/v1/proposals/{number}", READ, PROPOSE),
    both("/api/v1/proposals/{number}/effect", READ),
    both("/api/v1/proposals/{number}/conflicts", READ),
    both("/api/v1/proposals/{number}/revisions", PROPOSE),
    both("/api/v1/proposals/{number}/reviews", PROPOSE),
    both("/api/v1/proposals/{number}/comments", PROPOSE),
    both("/api/v1/proposals/{number}/comments/{id}", PROPOSE),
    both("/api/v1/proposals/{number}/merge", PUBLISH),
    both("/api/v1/proposals/{number}/close", PROPOSE),
    both("/api/v1/proposals/{number}/reopen", PROPOSE),
    both("/api/v1/proposals/{number}/revert", PROPOSE),
];

/// What a URL takes, by how the router has it; none where it has no row.
pub fn need(path: &str, reads: bool) -> Option<Need> {
    let route = ROUTES.iter().find(|route| route.path == path)?;
    Some(if reads { route.read } else { route.write })
}
