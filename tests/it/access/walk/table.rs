//! The tables of the walk: URLs and pushes that name something of a folder, and what each takes.

use cuebook::access::{Action, Permissions};

use super::{LABELS, POLICY, policy, written};

/// What an operation names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Of {
    /// Nothing: what is seen of both folders is shown.
    List,
    /// The whole library.
    Whole,
    /// A prompt.
    Prompt,
    /// A partial.
    Partial,
    /// Any file.
    File,
    /// An open proposal.
    Proposal,
    /// A merged one.
    Merged,
}

/// What it takes, beside reading what it names.
#[derive(Debug, Clone, Copy)]
pub(super) enum Takes {
    /// This at the path that is named.
    At(Action),
    /// This at another path.
    In(Action, &'static str),
    /// This at the path that is named, and to read the whole library.
    AndAll(Action),
    /// What a change of the file on main takes.
    Change,
}

impl Takes {
    pub(super) fn met(self, path: &str, may: &Permissions) -> bool {
        match self {
            Self::At(action) => may.may(action, path),
            Self::In(action, place) => may.may(action, place),
            Self::AndAll(action) => may.may(action, path) && may.sees_all(),
            Self::Change => {
                let action = match path {
                    LABELS => Action::MoveLabel,
                    POLICY => Action::ChangePolicy,
                    _ => Action::Publish,
                };
                may.may(action, path)
            }
        }
    }
}

/// What an answer says beside its status.
#[derive(Debug, Clone, Copy)]
pub(super) enum Says {
    Nothing,
    /// What stands inside, where it is done.
    Inside,
    /// These words, where it is refused.
    Refusal(&'static str),
}

/// An operation. What is written `@so` stands for what is named.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The method, and the URL as the router has it, with a query.
    pub(super) what: &'static str,
    pub(super) of: Of,
    pub(super) takes: Takes,
    /// JSON, or the fields of a form.
    pub(super) body: &'static str,
    /// The status where what is named is not read, where it is refused, and where it is done.
    pub(super) status: [u16; 3],
    pub(super) says: Says,
}

impl Row {
    pub(super) fn route(&self) -> (&'static str, &'static str) {
        let (method, url) = self.what.split_once(' ').unwrap();
        (method, url.split('?').next().unwrap())
    }

    const fn says(mut self, says: Says) -> Self {
        self.says = says;
        self
    }
}

/// A list of what may be done this to.
const fn lists(what: &'static str, action: Action) -> Row {
    does(what, Of::List, Takes::At(action), "", [403, 403, 200])
}

const fn reads(what: &'static str, of: Of) -> Row {
    does(what, of, Takes::At(Action::Read), "", [404, 404, 200])
}

const fn does(
    what: &'static str,
    of: Of,
    takes: Takes,
    body: &'static str,
    status: [u16; 3],
) -> Row {
    Row {
        what,
        of,
        takes,
        body,
        status,
        says: Says::Nothing,
    }
}

const READ: Takes = Takes::At(Action::Read);
const PROPOSE: Takes = Takes::At(Action::Propose);
const REVIEW: Takes = Takes::At(Action::Review);
const PUBLISH: Takes = Takes::At(Action::Publish);
const LABEL: Takes = Takes::In(Action::MoveLabel, LABELS);
/// A reviewer has asked for changes, so that nobody merges; who may not is told so all the same.
const NO_MERGE: Says = Says::Refusal("you may not publish");

/// Every URL that names something of a folder. What reads comes first, for what comes after changes it.
#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    lists("GET /", Action::Read),
    lists("GET /new", Action::Read),
    lists("GET /activity", Action::Read),
    lists("GET /proposals", Action::Read),
    lists("GET /inbox", Action::Review),
    lists("GET /editor/words", Action::Read),
    lists("GET /api/v1/search?q=the&limit=200", Action::Read),
    lists("GET /api/v1/prompts", Action::Read),
    lists("GET /api/v1/published", Action::Read),
    lists("GET /api/v1/usage", Action::Read),
    lists("GET /api/v1/deliveries?limit=1000", Action::Read),
    lists("GET /api/v1/proposals", Action::Read),
    lists("GET /api/v1/inbox", Action::Review),
    does("GET /library.git/info/refs?service=git-upload-pack", Of::Whole, READ, "", [403, 403, 200]),
    reads("GET /prompts/{name}", Of::Prompt).says(Says::Inside),
    does("POST /prompts/{name}", Of::Prompt, READ, "a.of=x", [404, 404, 200]).says(Says::Inside),
    does("POST /prompts/{name}/complete", Of::Prompt, READ, r#"{"argument":"of","value":""}"#, [404, 404, 200]),
    reads("GET /prompts/{name}/versions", Of::Prompt),
    reads("GET /prompts/{name}/diff?from=v1&to=v2", Of::Prompt),
    reads("GET /prompts/{name}/blame", Of::Prompt).says(Says::Inside),
    reads("GET /api/v1/prompts/{name}", Of::Prompt),
    reads("GET /api/v1/prompts/{name}/versions", Of::Prompt),
    reads("GET /api/v1/prompts/{name}/diff?from=v1&to=v2", Of::Prompt).says(Says::Inside),
    reads("GET /api/v1/prompts/{name}/blame", Of::Prompt).says(Says::Inside),
    reads("GET /edit/{*path}", Of::File),
    reads("GET /editor/file?path=@path", Of::File),
    does("GET /editor/place?path=prompts/@word/new.md", Of::Prompt, PROPOSE, "", [422, 422, 200]),
    does(
        "POST /editor/check", Of::Prompt, Takes::AndAll(Action::Propose),
        r#"{"files":{"prompts/@word/new.md":"---\ndescription: D\n---\nNew.\n"}}"#, [403, 403, 200],
    ),
    does("PUT /editor/draft", Of::Prompt, PROPOSE, r#"{"path":"@path","text":"Kept."}"#, [422, 422, 200]),
    does(
        "POST /api/v1/preview", Of::Partial, READ,
        r#"{"path":"prompts/new.md","text":"---\ndescription: D\n---\n{% include \"@word/terms.md\" %}\n"}"#, [200, 200, 200],
    ).says(Says::Inside),
    reads("GET /proposals/{number}", Of::Proposal).says(Says::Inside),
    reads("GET /proposals/{number}/conflicts", Of::Proposal),
    reads("GET /api/v1/proposals/{number}", Of::Proposal).says(Says::Inside),
    reads("GET /api/v1/proposals/{number}/effect", Of::Proposal),
    reads("GET /api/v1/proposals/{number}/conflicts", Of::Proposal),
    does("POST /proposals/{number}", Of::Proposal, PROPOSE, "do=comment&message=Hm.", [404, 403, 303]),
    does("POST /proposals/{number}", Of::Proposal, REVIEW, "do=approve&head=@head", [404, 403, 303]),
    does("POST /proposals/{number}", Of::Proposal, PUBLISH, "do=merge&head=@head", [404, 409, 409]).says(NO_MERGE),
    does("POST /proposals/{number}", Of::Proposal, PUBLISH, "do=close", [404, 403, 303]),
    does("POST /proposals/{number}", Of::Proposal, PUBLISH, "do=reopen", [404, 403, 303]),
    // made on another head than it has
    does("POST /proposals/{number}/conflicts", Of::Proposal, PROPOSE, "head=0000000&main=", [404, 403, 409]),
    does(
        "POST /api/v1/proposals/{number}/revisions", Of::Proposal, PROPOSE,
        r#"{"base":"0000000","files":{"@path":"@text"},"message":"m"}"#, [403, 403, 409],
    ),
    does(
        "POST /api/v1/proposals/{number}/reviews", Of::Proposal, PROPOSE,
        r#"{"verdict":"comment","head":"@head","message":"Hm."}"#, [404, 403, 201],
    ),
    does(
        "POST /api/v1/proposals/{number}/reviews", Of::Proposal, REVIEW,
        r#"{"verdict":"approve","head":"@head"}"#, [404, 403, 201],
    ),
    does("POST /api/v1/proposals/{number}/comments", Of::Proposal, PROPOSE, r#"{"message":"Hm."}"#, [404, 403, 201]),
    does("PATCH /api/v1/proposals/{number}/comments/{id}", Of::Proposal, REVIEW, r#"{"resolved":true}"#, [404, 403, 200]),
    does("POST /api/v1/proposals/{number}/merge", Of::Proposal, PUBLISH, r#"{"head":"@head"}"#, [404, 409, 409]).says(NO_MERGE),
    does("PATCH /api/v1/proposals/{number}", Of::Proposal, PUBLISH, r#"{"title":"@word @inside"}"#, [404, 403, 200]),
    does("POST /api/v1/proposals/{number}/close", Of::Proposal, PUBLISH, "{}", [404, 403, 200]),
    does("POST /api/v1/proposals/{number}/reopen", Of::Proposal, PUBLISH, "{}", [404, 403, 200]),
    does("POST /api/v1/proposals/{number}/revert", Of::Merged, PROPOSE, r#"{"message":"Why."}"#, [404, 403, 201]),
    does(
        "POST /api/v1/proposals", Of::Prompt, PROPOSE,
        r#"{"title":"T","base":"@tip","files":{"@path":"@text"}}"#, [403, 403, 201],
    ),
    does(
        "POST /api/v1/changes", Of::File, Takes::Change,
        r#"{"base":"@tip","message":"m","files":{"@path":"@text"}}"#, [403, 403, 200],
    ),
    does("POST /edit/{*path}", Of::Prompt, Takes::Change, "base=@tip&text=@text&message=m", [404, 403, 303]),
    does("POST /prompts/{name}/restore", Of::Prompt, PUBLISH, "version=v1&reason=r", [404, 403, 303]),
    does("POST /api/v1/prompts/{name}/revert", Of::Prompt, PUBLISH, r#"{"version":"v2","reason":"r"}"#, [404, 403, 200]),
    does("POST /prompts/{name}/promote", Of::Prompt, LABEL, "label=page-@turn&version=v1&reason=r", [404, 403, 303]),
    does(
        "POST /api/v1/prompts/{name}/label", Of::Prompt, LABEL,
        r#"{"label":"api-@turn","version":"v1","reason":"r"}"#, [404, 403, 200],
    ),
];

/// URLs without a row, and why.
pub(super) const OTHERS: &[(&str, &[&str])] = &[
    (
        "they say nothing of the library; what /readyz says more to who reads all of it is in api.rs",
        &["/healthz", "/readyz"],
    ),
    (
        "it names nothing of a folder; what it says more to who reads all of it is in tests/it/api/activity.rs",
        &["/api/v1/activity"],
    ),
    (
        "whom it is about has not said who they are",
        &[
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource/mcp",
            "/hooks/upstream",
            "/login",
            "/login/oidc",
            "/login/oidc/callback",
            "/login/oidc/logout",
            "/logout",
            "/setup",
        ],
    ),
    (
        "the same for everyone",
        &[
            "/assets/{file}",
            "/favicon.ico",
            "/language",
            "/connect",
            "/api",
            "/api/v1/openapi.json",
        ],
    ),
    (
        "their methods are the rows of mcp.rs",
        &["/mcp", "/mcp/", "/mcp/{*folder}"],
    ),
    (
        "git asks them, below",
        &[
            "/library.git/git-upload-pack",
            "/library.git/git-receive-pack",
        ],
    ),
    (
        "nothing is there",
        &["/library.git", "/library.git/", "/library.git/{*rest}"],
    ),
    (
        "people and credentials, which are in no folder",
        &[
            "/settings",
            "/settings/people",
            "/api/v1/access/me",
            "/api/v1/access/people",
            "/api/v1/access/people/{name}",
            "/api/v1/access/people/{name}/invite",
            "/api/v1/access/groups",
            "/api/v1/access/grants",
            "/api/v1/access/grants/revoke",
            "/api/v1/access/tokens",
            "/api/v1/access/tokens/{id}/revoke",
            "/api/v1/access/sessions",
            "/api/v1/access/sessions/{id}/revoke",
        ],
    ),
    (
        "asked of the whole library, in routes.rs",
        &[
            "/api/v1/audit",
            "/api/v1/audit/export",
            "/api/v1/verify",
            "/api/v1/reindex",
            "/api/v1/usage/erase-values",
        ],
    ),
];

/// A push, and what it takes where.
pub(super) struct Push {
    pub(super) path: &'static str,
    pub(super) text: fn(usize) -> String,
    pub(super) to: &'static str,
    pub(super) takes: (Action, &'static str),
}

const ONE: &str = "prompts/harbour/harbour-census.md";
const TWO: &str = "prompts/orchard/orchard-ledger.md";
const MAIN: &str = "refs/heads/main";

/// Every kind of push.
pub(super) const PUSHES: [Push; 9] = [
    Push {
        path: ONE,
        text: |turn| written(ONE, turn),
        to: MAIN,
        takes: (Action::Publish, ONE),
    },
    Push {
        path: TWO,
        text: |turn| written(TWO, turn),
        to: MAIN,
        takes: (Action::Publish, TWO),
    },
    Push {
        path: LABELS,
        text: |turn| written(LABELS, turn),
        to: MAIN,
        takes: (Action::MoveLabel, LABELS),
    },
    Push {
        path: LABELS,
        text: |turn| format!("[guarded]\nharbour-census = \"v{}\"\n", turn % 2 + 1),
        to: MAIN,
        takes: (Action::MoveProtectedLabel, LABELS),
    },
    Push {
        path: POLICY,
        text: policy,
        to: MAIN,
        takes: (Action::ChangePolicy, POLICY),
    },
    Push {
        path: ONE,
        text: |turn| written(ONE, turn),
        to: "refs/for/main",
        takes: (Action::Propose, ONE),
    },
    Push {
        path: TWO,
        text: |turn| written(TWO, turn),
        to: "refs/for/main",
        takes: (Action::Propose, TWO),
    },
    // what is kept beside main is of the whole library
    Push {
        path: ONE,
        text: |turn| written(ONE, turn),
        to: "refs/heads/wip",
        takes: (Action::Publish, ""),
    },
    Push {
        path: ONE,
        text: |turn| written(ONE, turn),
        to: "refs/tags/t",
        takes: (Action::Publish, ""),
    },
];
