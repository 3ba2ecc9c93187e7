//! The walk: everything that names something of the library, done by every role in every folder of one server, and held
//! against the permissions. URLs and pushes have their tables here, methods and tools in `mcp.rs`. What somebody may not
//! read must look like what is not there.

mod table;

use std::collections::BTreeSet;

use cuebook::access::{Action, Permissions, ROUTES, Role, need};
use regex::Regex;
use serde_json::{Value, json};

use table::{OTHERS, Of, PUSHES, ROWS, Row, Says};

use super::routes::routed;
use super::{Guarded, Person, mcp, met, permissions};
use crate::git::{Work, git};
use crate::support::http::{Reply, send};
use crate::support::mcp::MODERN;
use crate::support::soon;

/// What stands in one of two folders that are alike: names and texts hold its word, and texts a word that no name holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side {
    pub(super) word: &'static str,
    pub(super) prompt: &'static str,
    inside: &'static str,
}

pub(super) const SIDES: [Side; 2] = [
    Side {
        word: "harbour",
        prompt: "harbour-census",
        inside: "Mackerel",
    },
    Side {
        word: "orchard",
        prompt: "orchard-ledger",
        inside: "Bergamot",
    },
];

/// What is nowhere, with names as long as theirs.
pub(super) const ABSENT: Side = Side {
    word: "qqqqqqq",
    prompt: "qqqqqqq-wwwwww",
    inside: "",
};

impl Side {
    pub(super) fn uri(self) -> String {
        format!("{0}://{0}-book", self.word)
    }

    pub(super) fn template(self) -> String {
        format!("{}://{{name}}", self.word)
    }

    pub(super) fn path(self) -> String {
        format!("prompts/{}/{}.md", self.word, self.prompt)
    }

    /// Another prompt in its folder.
    fn beside(self, what: &str) -> String {
        format!("prompts/{}/{}-{what}.md", self.word, self.prompt)
    }

    fn partial(self) -> String {
        format!("partials/{}/terms.md", self.word)
    }

    fn resource(self) -> String {
        format!("resources/{0}/{0}-book.md", self.word)
    }

    /// Its files as of a turn.
    fn files(self, turn: usize) -> Vec<(String, String)> {
        let Self { word, inside, .. } = self;
        let text = format!("{inside} {turn} of the {word}");
        let prompt = format!(
            "---\ndescription: D\narguments: [{{ name: of, values: {{ resource: \"{word}://{{of}}\" }} }}]\n---\n{text} for {{{{ of }}}}.\n"
        );
        vec![
            (self.path(), prompt),
            (self.partial(), format!("{text}.\n")),
            (self.resource(), format!("# {text}\n")),
        ]
    }
}

const LABELS: &str = "labels.toml";
const POLICY: &str = "cuebook.toml";

fn policy(turn: usize) -> String {
    let mut out = format!("title = \"Library {turn}\"\nprotected_labels = [\"guarded\"]\n");
    for side in SIDES {
        out.push_str(&format!(
            "[[resource]]\ntemplate = \"{}\"\n",
            side.template()
        ));
    }
    out
}

fn note(text: &str) -> String {
    format!("---\ndescription: D\n---\n{text}\n")
}

/// What a file can be changed to: another text each time.
fn written(path: &str, turn: usize) -> String {
    match path {
        LABELS => format!("[walk-{turn}]\n{} = \"v1\"\n", SIDES[0].prompt),
        POLICY => policy(turn),
        _ if path.starts_with("prompts/") => note(&format!("Written {turn}.")),
        _ => format!("Written {turn}.\n"),
    }
}

/// Where a role is given.
const PLACES: [(&str, &[&str]); 3] = [
    (
        "one",
        &[
            "prompts/harbour/**",
            "partials/harbour/**",
            "resources/harbour/**",
        ],
    ),
    (
        "two",
        &[
            "prompts/orchard/**",
            "partials/orchard/**",
            "resources/orchard/**",
        ],
    ),
    ("all", &["**"]),
];

/// One file.
const LABELS_ALONE: &[&str] = &[LABELS];
const POLICY_ALONE: &[&str] = &[POLICY];

/// A role and where it is given.
type Granted = (&'static str, &'static str);

/// Somebody with nothing; every role in each place; who reads all and may do more in one place; who has one file. Pages
/// show their names, which therefore hold no word of the folders.
fn people() -> Vec<(String, Vec<Granted>)> {
    let [(_, one), (_, two), _] = PLACES;
    let granted = |role: &'static str, places: &'static [&'static str]| -> Vec<Granted> {
        places.iter().map(|place| (role, *place)).collect()
    };
    let mut out = vec![("nothing".to_owned(), Vec::new())];
    for role in Role::ALL.map(Role::as_str) {
        for (place, patterns) in PLACES {
            out.push((format!("{role}-{place}"), granted(role, patterns)));
        }
    }
    for (n, (role, places)) in [
        ("author", one),
        ("publisher", one),
        ("admin", two),
        ("publisher", LABELS_ALONE),
        ("admin", POLICY_ALONE),
    ]
    .into_iter()
    .enumerate()
    {
        let mut grants = granted(role, places);
        grants.push(("reader", "**"));
        out.push((format!("reads-all-{role}-{n}"), grants));
    }
    out.push(("labels-alone".into(), granted("admin", LABELS_ALONE)));
    out.push(("policy-alone".into(), granted("admin", POLICY_ALONE)));
    let mut grants = granted("publisher", LABELS_ALONE);
    grants.extend(granted("reader", one));
    out.push(("labels-of-one".into(), grants));
    out
}

#[test]
fn every_url_is_walked_or_names_nothing_of_a_folder() {
    let others: BTreeSet<&str> = OTHERS.iter().flat_map(|(_, urls)| *urls).copied().collect();
    let known: BTreeSet<&str> = ROUTES.iter().map(|route| route.path).collect();
    let gone: Vec<_> = others.difference(&known).collect();
    assert!(gone.is_empty(), "{gone:?}");
    let rows: BTreeSet<String> = ROWS
        .iter()
        .map(|row| row.what.split('?').next().unwrap().to_owned())
        .collect();
    let all = routed();
    let mut walked: BTreeSet<String> = BTreeSet::new();
    for (url, methods) in all.iter().filter(|(url, _)| !others.contains(&***url)) {
        walked.extend(methods.iter().map(|method| format!("{method} {url}")));
    }
    // what one has kept oneself
    for own in ["GET /editor/draft", "DELETE /editor/draft"] {
        assert!(walked.remove(own), "{own}");
    }
    assert_eq!(rows, walked);
}

/// Something that an operation names.
#[derive(Debug, Clone, Default)]
struct Thing {
    word: String,
    prompt: String,
    path: String,
    inside: String,
    number: i64,
    /// Of the first comment.
    id: i64,
    head: String,
}

impl Thing {
    fn at(side: Side, path: String) -> Self {
        Self {
            word: side.word.into(),
            prompt: side.prompt.into(),
            inside: side.inside.into(),
            path,
            ..Self::default()
        }
    }

    /// Whether everybody knows its name: a file that every library has, or the whole library.
    fn is_known(&self) -> bool {
        self.word.is_empty()
    }

    /// The like of it that is nowhere.
    fn absent(&self) -> Self {
        Self {
            word: ABSENT.word.into(),
            prompt: ABSENT.prompt.into(),
            path: self
                .path
                .replace(&self.prompt, ABSENT.prompt)
                .replace(&self.word, ABSENT.word),
            number: 999,
            inside: String::new(),
            ..self.clone()
        }
    }

    fn fill(&self, text: &str, tip: &str, turn: usize, escaped: fn(&str) -> String) -> String {
        text.replace("@word", &self.word)
            .replace("@path", &self.path)
            .replace("@inside", &self.inside)
            .replace("@head", &self.head)
            .replace("@tip", tip)
            .replace("@turn", &turn.to_string())
            .replace("@text", &escaped(&written(&self.path, turn)))
    }
}

/// An answer without what was asked for, and without what is another each time.
fn without(reply: &Reply, thing: &Thing) -> (u16, String) {
    let mut text = String::from_utf8_lossy(&reply.body).into_owned();
    for name in [&thing.path, &thing.prompt, &thing.word] {
        text = text.replace(name, "…");
    }
    let number = Regex::new(r"(roposals?(?: |/|%2F)|Written |page-)\d+").unwrap();
    let token = Regex::new(r"[A-Za-z0-9_-]{43}").unwrap();
    let text = number.replace_all(&text, "$1…");
    (reply.status, token.replace_all(&text, "…").into_owned())
}

fn in_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn in_form(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The server that is walked.
struct World {
    server: Guarded,
    /// A clone of who may everything.
    work: Work,
    /// Of the forms of pages; who comes with a token has one and the same.
    csrf: String,
    open: Vec<Thing>,
    merged: Vec<Thing>,
    /// Grows, so that no text is written twice.
    turn: usize,
}

impl World {
    async fn start(people: &[Person<'_>]) -> Self {
        let mut files: Vec<(String, String)> = vec![
            (POLICY.into(), policy(0)),
            (LABELS.into(), "# None.\n".into()),
        ];
        for side in SIDES {
            files.extend(side.files(1));
            for what in ["after", "merged"] {
                files.push((side.beside(what), note("Before.")));
            }
        }
        let server = Guarded::start(&borrowed(&files), people).await;
        let mut world = Self {
            work: server.work("root", "root"),
            server,
            csrf: String::new(),
            open: Vec::new(),
            merged: Vec::new(),
            turn: 1,
        };
        world.begin().await;
        for side in SIDES {
            let mut thing = world.proposed(side, "after").await;
            let path = format!("/api/v1/proposals/{}", thing.number);
            let said = world
                .done(
                    "root",
                    &format!("{path}/comments"),
                    &json!({ "message": "Why?" }),
                )
                .await;
            thing.id = said["id"].as_i64().unwrap();
            let no = json!({ "verdict": "request-changes", "head": thing.head, "message": "Why?" });
            world.done("judge", &format!("{path}/reviews"), &no).await;
            world.open.push(thing);
        }
        for side in SIDES {
            let thing = world.proposed(side, "merged").await;
            let path = format!("/api/v1/proposals/{}/merge", thing.number);
            world
                .done("root", &path, &json!({ "head": thing.head }))
                .await;
            world.merged.push(thing);
        }
        world.get_both().await;
        let page = world.server.get("root", "/prompts/harbour-census").await;
        let token = page.text().split("name=\"csrf\" value=\"").nth(1).unwrap();
        token.split('"').next().unwrap().clone_into(&mut world.csrf);
        world
    }

    async fn tip(&self) -> String {
        let ready = self.server.get("root", "/readyz").await.json();
        ready["tip"].as_str().unwrap().to_owned()
    }

    /// What must be done.
    async fn done(&self, who: &str, path: &str, body: &Value) -> Value {
        let reply = self.server.post(who, path, &body.to_string()).await;
        assert!(
            matches!(reply.status, 200 | 201),
            "{path}: {}",
            reply.text()
        );
        reply.json()
    }

    async fn proposed(&self, side: Side, what: &str) -> Thing {
        let thing = Thing::at(side, side.beside(what));
        let path = &*thing.path;
        let body = json!({
            "title": format!("{} {}", side.word, side.inside),
            "base": self.tip().await,
            "files": { path: note(&format!("{what} the {}.", side.word)) },
        });
        let opened = self.done("root", "/api/v1/proposals", &body).await;
        Thing {
            number: opened["number"].as_i64().unwrap(),
            head: opened["head"].as_str().unwrap().to_owned(),
            ..thing
        }
    }

    /// Prompts that were delivered, so that there is something to tell of.
    async fn get_both(&self) {
        for side in SIDES {
            let params = json!({ "name": side.prompt, "arguments": { "of": "x" } });
            let reply = self
                .server
                .ask("root", "/mcp", MODERN, "prompts/get", params)
                .await;
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        // written behind what is served
        soon("both to be written", async {
            loop {
                let told = self.server.get("root", "/api/v1/deliveries").await;
                if SIDES.iter().all(|side| told.text().contains(side.prompt)) {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
    }

    /// Everything is as it was for who came before.
    async fn begin(&mut self) {
        self.turn += 1;
        let mut files: Vec<(String, String)> = vec![(LABELS.into(), "# None.\n".into())];
        files.extend(SIDES.into_iter().flat_map(|side| side.files(self.turn)));
        self.server.publish(&borrowed(&files)).await;
    }

    /// Closes what was opened.
    async fn end(&self) {
        let list = "/api/v1/proposals?limit=200";
        let listed = self.server.get("root", list).await.json();
        for proposal in listed["proposals"].as_array().unwrap() {
            let number = proposal["number"].as_i64().unwrap();
            if !self.open.iter().any(|thing| thing.number == number) {
                let path = format!("/api/v1/proposals/{number}/close");
                self.done("root", &path, &json!({})).await;
            }
        }
    }

    fn things(&self, of: Of) -> Vec<Thing> {
        let sides =
            |path: fn(Side) -> String| SIDES.map(|side| Thing::at(side, path(side))).to_vec();
        let known = |path: &str| Thing {
            path: path.into(),
            ..Thing::default()
        };
        match of {
            Of::List => Vec::new(),
            Of::Whole => vec![known("")],
            Of::Prompt => sides(Side::path),
            Of::Partial => sides(Side::partial),
            Of::File => [
                sides(Side::path),
                sides(Side::partial),
                sides(Side::resource),
            ]
            .concat()
            .into_iter()
            .chain([known(LABELS), known(POLICY)])
            .collect(),
            Of::Proposal => self.open.clone(),
            Of::Merged => self.merged.clone(),
        }
    }

    /// Does an operation to something; `who` is none for a client without a credential.
    async fn ask(&mut self, who: Option<&str>, row: &Row, thing: &Thing) -> Reply {
        self.turn += 1;
        let tip = if row.body.contains("@tip") {
            self.tip().await
        } else {
            String::new()
        };
        let (method, url) = row.what.split_once(' ').unwrap();
        let url = url
            .replace("{name}", &thing.prompt)
            .replace("{*path}", &thing.path)
            .replace("{number}", &thing.number.to_string())
            .replace("{id}", &thing.id.to_string());
        let url = thing.fill(&url, &tip, self.turn, str::to_owned);
        let (kind, body) = if row.body.is_empty() {
            ("", String::new())
        } else if row.body.starts_with('{') {
            let body = thing.fill(row.body, &tip, self.turn, in_json);
            ("application/json", body)
        } else {
            let mut body = format!("csrf={}", self.csrf);
            for field in row.body.split('&') {
                let (name, value) = field.split_once('=').unwrap();
                let value = thing.fill(value, &tip, self.turn, str::to_owned);
                body.push_str(&format!("&{name}={}", in_form(&value)));
            }
            ("application/x-www-form-urlencoded", body)
        };
        let bearer = who.map(|who| self.server.bearer(who)).unwrap_or_default();
        // who is not known is sent to a page to sign in, where they take one
        let accept = if who.is_some() { "text/html" } else { "*/*" };
        let headers = [
            ("Authorization", &*bearer),
            ("Accept", accept),
            ("Content-Type", kind),
            ("X-Cuebook", "1"),
        ];
        send(self.server.address, method, &url, &headers, body.as_bytes()).await
    }

    /// Everything at URLs, as one person.
    async fn urls(&mut self, who: &str, may: &Permissions) {
        for row in ROWS {
            let (method, route) = row.route();
            let let_in = met(need(route, method == "GET").unwrap(), may);
            if row.of == Of::List {
                let reply = self.ask(Some(who), row, &Thing::default()).await;
                let text = reply.text();
                let status = row.status[if let_in { 2 } else { 1 }];
                assert_eq!(reply.status, status, "{who}: {}: {text}", row.what);
                for side in SIDES {
                    let shows = let_in && row.takes.met(&side.path(), may);
                    let what = format!("{who}: {} shows {}: {text}", row.what, side.word);
                    assert_eq!(text.contains(side.word), shows, "{what}");
                }
                continue;
            }
            for thing in self.things(row.of) {
                let what = format!("{who}: {} {} of {}", row.what, row.body, thing.path);
                let sees = may.may(Action::Read, &thing.path);
                let is_done = let_in && sees && row.takes.met(&thing.path, may);
                let status = match (let_in, sees) {
                    (false, _) => 403,
                    (true, false) => row.status[0],
                    (true, true) => row.status[if is_done { 2 } else { 1 }],
                };
                let reply = self.ask(Some(who), row, &thing).await;
                let text = String::from_utf8_lossy(&reply.body).into_owned();
                assert_eq!(reply.status, status, "{what}: {text}");
                for side in SIDES {
                    let hidden = !may.may(Action::Read, &side.path());
                    assert!(!(hidden && text.contains(side.inside)), "{what}: {text}");
                }
                match row.says {
                    Says::Nothing => {}
                    Says::Inside => {
                        assert_eq!(text.contains(&thing.inside), is_done, "{what}: {text}");
                    }
                    Says::Refusal(words) => {
                        let refused = let_in && sees && !is_done;
                        assert_eq!(text.contains(words), refused, "{what}: {text}");
                    }
                }
                if !sees && !thing.is_known() {
                    let absent = thing.absent();
                    let nothing = self.ask(Some(who), row, &absent).await;
                    assert_eq!(
                        without(&reply, &thing),
                        without(&nothing, &absent),
                        "{what}"
                    );
                }
            }
        }
    }

    /// Clones and pushes, as one person.
    fn git(&mut self, who: &str, may: &Permissions) {
        let (bare, url) = (self.server.bare(), self.server.url(who));
        let clone = format!("clone-of-{who}");
        let ran = git(
            self.server.folder.path(),
            &["clone", "--quiet", "--depth=1", &url, &clone],
        );
        assert_eq!(ran.ok, may.sees_all(), "{who} clones: {}", ran.text);
        if !ran.ok {
            ran.says("403");
        }
        // who reads a part has nothing to push from, and who reads alone nothing to push
        let let_in = may.sees_all() && may.may_somewhere(Action::Propose);
        for push in PUSHES {
            self.turn += 1;
            self.work.back();
            self.work.change(&[(push.path, &*(push.text)(self.turn))]);
            let ran = self
                .work
                .git(&["push", "--force", &url, &format!("HEAD:{}", push.to)]);
            let (action, place) = push.takes;
            let expected = let_in && may.may(action, place);
            let what = format!("{who} pushes {} to {}", push.path, push.to);
            assert_eq!(ran.ok, expected, "{what}:\n{}", ran.text);
            if !let_in {
                ran.says("403");
                // git asks for the refs first, and is told there
                return;
            }
            if !expected {
                let told = ran.remote().iter().any(|line| line.contains("you may"));
                assert!(told, "{what}:\n{}", ran.text);
            }
        }
        assert!(git(&bare, &["branch", "gone", "main"]).ok);
        let ran = self.work.git(&["push", &url, ":refs/heads/gone"]);
        assert_eq!(ran.ok, may.may(Action::Publish, ""), "{who}: {}", ran.text);
        git(&bare, &["branch", "-D", "gone"]);
    }
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    let files = files.iter();
    files.map(|(path, text)| (&**path, &**text)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_in_every_folder_is_for_who_the_table_says() {
    let people = people();
    let mut known: Vec<Person<'_>> = people
        .iter()
        .map(|(name, grants)| (&**name, &**grants))
        .collect();
    known.push(("judge", &[("reviewer", "**")]));
    let mut world = World::start(&known).await;
    for row in ROWS {
        let thing = world.things(row.of).into_iter().next().unwrap_or_default();
        let reply = world.ask(None, row, &thing).await;
        assert_eq!(reply.status, 401, "{}: {}", row.what, reply.text());
    }
    for (who, grants) in &people {
        let may = permissions(grants);
        world.begin().await;
        mcp::walk(&world.server, who, &may).await;
        world.urls(who, &may).await;
        world.git(who, &may);
        world.end().await;
    }
}
