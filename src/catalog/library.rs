//! `cuebook.toml` and `labels.toml`: what a library says about itself.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::prompt::name::{is_label, version_number};
use crate::prompt::problem::{Problem, Severity, nearest};
use crate::prompt::source::Source;

use super::policy::{Approval, MAX_REQUIRED, PathPattern};
use super::uri::UriTemplate;

/// The format this release reads.
pub const FORMAT: i64 = 1;

/// A resource family of `cuebook.toml`.
#[derive(Debug, Clone)]
pub struct ResourceFamily {
    /// e.g. `runbook://{service}` (RFC 6570 level 1).
    pub template: String,
    /// Name for lists: the scheme and the variables, e.g. `runbook`.
    pub name: String,
    /// Title for people.
    pub title: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// MIME type, when declared.
    pub mime_type: Option<String>,
    /// The template, parsed.
    pub parsed: UriTemplate,
}

/// What `cuebook.toml` says.
#[derive(Debug, Clone, Default)]
pub struct Library {
    /// Title for people.
    pub title: Option<String>,
    /// Instructions for clients.
    pub instructions: Option<String>,
    /// Declared families.
    pub families: Vec<ResourceFamily>,
    /// The label that is served by default; latest where there is none.
    pub serve: Option<String>,
    /// Whether prompts without that label are hidden; else they are served at latest.
    pub hide_unlabelled: bool,
    /// Labels that not everyone may move.
    pub protected_labels: Vec<String>,
    /// Files that take approvals to change.
    pub approvals: Vec<Approval>,
}

#[derive(Deserialize)]
struct FormatOnly {
    format: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LibraryFile {
    #[serde(rename = "format")]
    _format: Option<i64>,
    title: Option<String>,
    instructions: Option<String>,
    serve: Option<Spanned<String>>,
    unlabelled: Option<Spanned<String>>,
    #[serde(default)]
    protected_labels: Vec<Spanned<String>>,
    #[serde(default)]
    resource: Vec<FamilyEntry>,
    #[serde(default)]
    approval: Vec<Spanned<ApprovalEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalEntry {
    #[serde(default)]
    paths: Vec<Spanned<String>>,
    required: Option<Spanned<i64>>,
    #[serde(default)]
    reviewers: Vec<Spanned<String>>,
    #[serde(default)]
    rollback: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyEntry {
    template: Spanned<String>,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
}

/// Reads `cuebook.toml`.
pub fn library(source: &Source, problems: &mut Vec<Problem>) -> Library {
    // a newer format may say more than is known here: that comes first
    if let Ok(FormatOnly {
        format: Some(format),
    }) = toml::from_str(&source.text)
        && *format.get_ref() != FORMAT
    {
        problems.push(source.problem(
            Severity::Error,
            "library-format",
            format.span(),
            format!(
                "format {} is not known to this release, which reads format {FORMAT}",
                format.get_ref()
            ),
            Some("update cuebook, or write format = 1".into()),
        ));
        return Library::default();
    }
    let file: LibraryFile = match toml::from_str(&source.text) {
        Ok(file) => file,
        Err(error) => {
            problems.push(toml_problem(source, &error));
            return Library::default();
        }
    };
    let mut families: Vec<ResourceFamily> = Vec::new();
    for entry in file.resource {
        let template = entry.template.get_ref();
        let span = entry.template.span();
        match UriTemplate::parse(template) {
            Err(fault) => problems.push(source.problem(
                Severity::Error,
                "resource-template",
                span,
                format!("`{template}` is no resource template: {fault}"),
                Some("like \"runbook://{service}\"".into()),
            )),
            Ok(_) if families.iter().any(|f| f.template == *template) => {
                problems.push(source.problem(
                    Severity::Error,
                    "resource-template",
                    span,
                    format!("`{template}` is declared twice"),
                    None,
                ));
            }
            Ok(parsed) => families.push(ResourceFamily {
                name: format!(
                    "{}-{}",
                    parsed.scheme(),
                    parsed.variables().collect::<Vec<_>>().join("-")
                ),
                template: template.clone(),
                title: entry.title,
                description: entry.description,
                mime_type: entry.mime_type,
                parsed,
            }),
        }
    }
    let mut label = |given: Spanned<String>| {
        let name = given.get_ref();
        if is_label(name) {
            return Some(given.into_inner());
        }
        let span = given.span();
        problems.push(not_a_label(source, name, span));
        None
    };
    // what is served by default needs no label to be that
    let serve = file.serve.filter(|given| given.get_ref() != "latest");
    let serve = serve.and_then(&mut label);
    let protected_labels = file.protected_labels.into_iter().filter_map(label);
    let protected_labels = protected_labels.collect();
    let mut hide_unlabelled = false;
    if let Some(unlabelled) = file.unlabelled {
        match unlabelled.get_ref().as_str() {
            "hidden" => hide_unlabelled = true,
            "latest" => {}
            other => problems.push(source.problem(
                Severity::Error,
                "unlabelled",
                unlabelled.span(),
                format!(
                    "`{}` is not what prompts without the label can be",
                    other.chars().take(40).collect::<String>()
                ),
                Some("\"latest\" or \"hidden\"".into()),
            )),
        }
    }
    let approvals = file.approval.into_iter();
    let approvals = approvals.filter_map(|entry| approval(source, entry, problems));
    let approvals = approvals.collect();
    Library {
        title: file.title,
        instructions: file.instructions,
        families,
        serve,
        hide_unlabelled,
        protected_labels,
        approvals,
    }
}

/// A rule of approvals, where nothing is wrong with it.
fn approval(
    source: &Source,
    entry: Spanned<ApprovalEntry>,
    problems: &mut Vec<Problem>,
) -> Option<Approval> {
    let whole = entry.span();
    let entry = entry.into_inner();
    let before = problems.len();
    let mut wrong = |span: Range<usize>, message: String, hint: &str| {
        problems.push(source.problem(
            Severity::Error,
            "approval",
            span,
            message,
            Some(hint.into()),
        ));
    };
    let shown = |text: &str| text.chars().take(80).collect::<String>();
    if entry.paths.is_empty() {
        wrong(
            whole,
            "an [[approval]] names no paths".into(),
            "like paths = [\"prompts/sre/**\"]",
        );
    }
    let mut paths = Vec::new();
    for path in &entry.paths {
        match PathPattern::parse(path.get_ref()) {
            Ok(pattern) => paths.push(pattern),
            Err(fault) => wrong(
                path.span(),
                format!(
                    "`{}` is no pattern of paths: {fault}",
                    shown(path.get_ref())
                ),
                "like \"prompts/sre/**\"",
            ),
        }
    }
    let required = match &entry.required {
        None => 1,
        Some(given) => match u32::try_from(*given.get_ref()) {
            Ok(number) if (1..=MAX_REQUIRED).contains(&number) => number,
            _ => {
                wrong(
                    given.span(),
                    format!("{} approvals cannot be required", given.get_ref()),
                    &format!("a number from 1 to {MAX_REQUIRED}"),
                );
                1
            }
        },
    };
    let mut reviewers = Vec::new();
    for reviewer in &entry.reviewers {
        let name = reviewer.get_ref();
        let bare = name.strip_prefix("group:").unwrap_or(name);
        if bare.is_empty() || bare.contains(|c: char| c.is_whitespace() || c.is_control()) {
            wrong(
                reviewer.span(),
                format!("`{}` is neither a name nor a group", shown(name)),
                "like \"mina\", or \"group:sre\"",
            );
        } else {
            reviewers.push(name.clone());
        }
    }
    (problems.len() == before).then_some(Approval {
        paths,
        required,
        reviewers,
        rollback: entry.rollback,
    })
}

/// The approvals that a `cuebook.toml` asks for; none where it cannot be read.
pub fn approvals(bytes: &[u8]) -> Option<Vec<Approval>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut problems = Vec::new();
    let library = library(&Source::new(&"cuebook.toml".into(), text), &mut problems);
    let readable = !problems.iter().any(Problem::is_error);
    readable.then_some(library.approvals)
}

fn not_a_label(source: &Source, name: &str, span: Range<usize>) -> Problem {
    source.problem(
        Severity::Error,
        "label-name",
        span,
        format!(
            "`{}` cannot be a label",
            name.chars().take(40).collect::<String>()
        ),
        Some(
            "a-z, then a-z, 0-9, `-`, `_`; not `latest`, a version (`v3`) or 7 to 40 hex digits"
                .into(),
        ),
    )
}

/// Labels by name, each a version by prompt name, with the place of each entry.
pub type Labels = BTreeMap<String, BTreeMap<String, (u64, Range<usize>)>>;

/// Reads `labels.toml`: `[production]`, then `incident-triage = "v12"`.
pub fn labels(source: &Source, problems: &mut Vec<Problem>) -> Labels {
    let mut out = Labels::new();
    let file: BTreeMap<Spanned<String>, BTreeMap<String, Spanned<String>>> =
        match toml::from_str(&source.text) {
            Ok(file) => file,
            Err(error) => {
                problems.push(toml_problem(source, &error));
                return out;
            }
        };
    for (label, entries) in file {
        if !is_label(label.get_ref()) {
            problems.push(not_a_label(source, label.get_ref(), label.span()));
            continue;
        }
        let mut versions = BTreeMap::new();
        for (prompt, version) in entries {
            match version_number(version.get_ref()) {
                Some(number) if number > 0 => {
                    versions.insert(prompt, (number, version.span()));
                }
                _ => problems.push(source.problem(
                    Severity::Error,
                    "label-version",
                    version.span(),
                    format!(
                        "`{}` is not a version",
                        version.get_ref().chars().take(40).collect::<String>()
                    ),
                    Some("versions are written \"v12\"".into()),
                )),
            }
        }
        out.insert(label.into_inner(), versions);
    }
    out
}

/// Labels that name no prompt and get a suggestion; the rest are only named.
const SUGGESTIONS: usize = 20;

/// Labels must name prompts that exist: `known` says whether one does, `names` gives all for suggestions.
pub fn check_labels<'a, N: Iterator<Item = &'a str>>(
    source: &Source,
    labels: &Labels,
    known: impl Fn(&str) -> bool,
    names: impl Fn() -> N,
    problems: &mut Vec<Problem>,
) {
    let mut missing = 0;
    for (label, entries) in labels {
        for (prompt, (_, span)) in entries {
            if known(prompt) {
                continue;
            }
            missing += 1;
            let near = (missing <= SUGGESTIONS)
                .then(|| nearest(prompt, names()))
                .flatten();
            let hint = near.map_or_else(
                || "remove the line".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            problems.push(source.problem(
                Severity::Error,
                "label-prompt",
                span.clone(),
                format!("label `{label}` names the prompt `{prompt}`, which does not exist"),
                Some(hint),
            ));
        }
    }
}

/// The problem that a label is on a version that there is not.
pub const NO_SUCH_VERSION: &str = "label-no-version";
/// The problem that the version a served label is on does not pass the check.
pub const LABEL_FAILS: &str = "label-fails";

/// Whether only who knows the versions finds a problem: a check of the files alone does not.
pub fn rests_on_versions(code: &str) -> bool {
    code == NO_SUCH_VERSION || code == LABEL_FAILS
}

/// Labels must be on versions that exist: `latest` gives how many a prompt has.
pub fn check_label_versions(
    source: &Source,
    labels: &Labels,
    latest: impl Fn(&str) -> u64,
    problems: &mut Vec<Problem>,
) {
    for (label, entries) in labels {
        for (prompt, (number, span)) in entries {
            let has = latest(prompt);
            if *number <= has {
                continue;
            }
            let hint = match has {
                0 => "it has none yet".to_owned(),
                has => format!("its newest is \"v{has}\""),
            };
            problems.push(source.problem(
                Severity::Error,
                NO_SUCH_VERSION,
                span.clone(),
                format!("label `{label}` is on v{number} of `{prompt}`, which does not exist"),
                Some(hint),
            ));
        }
    }
}

fn toml_problem(source: &Source, error: &toml::de::Error) -> Problem {
    let why = error.message().lines().next().unwrap_or_default();
    source.problem(
        Severity::Error,
        "toml",
        error.span().unwrap_or(0..0),
        format!("the file cannot be read: {why}"),
        Some("see docs/library-format.md for what this file can say".into()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> (Library, Vec<String>) {
        let mut problems = Vec::new();
        let library = library(&Source::new(&"cuebook.toml".into(), text), &mut problems);
        (
            library,
            problems
                .iter()
                .map(|p| format!("{}:{} {}", p.line, p.column, p.code))
                .collect(),
        )
    }

    #[test]
    fn a_library() {
        let (library, problems) = check(
            "format = 1\ntitle = \"T\"\n[[resource]]\ntemplate = \"runbook://{service}\"\ntitle = \"R\"\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(library.families[0].name, "runbook-service");
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        assert_eq!(check("format = 2").1, ["1:10 library-format"]);
        assert_eq!(check("titel = \"x\"").1, ["1:1 toml"]);
        assert_eq!(check("title = 1").1, ["1:9 toml"]);
        assert_eq!(
            check("[[resource]]\ntemplate = \"x\"\n").1,
            ["2:12 resource-template"]
        );
    }

    #[test]
    fn what_is_served_by_default() {
        let (library, problems) = check(
            "serve = \"production\"\nunlabelled = \"hidden\"\nprotected_labels = [\"production\"]\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        assert_eq!(library.serve.as_deref(), Some("production"));
        assert!(library.hide_unlabelled);
        assert_eq!(library.protected_labels, ["production"]);
        assert_eq!(check("serve = \"latest\"").0.serve, None);
        assert_eq!(check("serve = \"v3\"").1, ["1:9 label-name"]);
        assert_eq!(check("unlabelled = \"gone\"").1, ["1:14 unlabelled"]);
        assert_eq!(
            check("protected_labels = [\"a\", \"deadbeef\"]").1,
            ["1:26 label-name"]
        );
    }

    #[test]
    fn approvals_are_read_strictly() {
        let (library, problems) = check(
            "[[approval]]\npaths = [\"prompts/sre/**\"]\nreviewers = [\"group:sre\", \"mina\"]\nrequired = 2\nrollback = true\n[[approval]]\npaths = [\"labels.toml\"]\n",
        );
        assert_eq!(problems, Vec::<String>::new());
        let [sre, labels] = &library.approvals[..] else {
            panic!("{library:?}");
        };
        assert!(sre.covers("prompts/sre/x.md") && !sre.covers("labels.toml"));
        assert_eq!((sre.required, sre.rollback), (2, true));
        assert_eq!(sre.reviewers, ["group:sre", "mina"]);
        assert_eq!((labels.required, labels.rollback), (1, false));
        assert_eq!(check("[[approval]]\nrequired = 1\n").1, ["1:1 approval"]);
        assert_eq!(
            check("[[approval]]\npaths = [\"/x\"]\n").1,
            ["2:10 approval"]
        );
        for wrong in ["0", "21", "-1"] {
            let text = format!("[[approval]]\npaths = [\"x\"]\nrequired = {wrong}\n");
            assert_eq!(check(&text).1, ["3:12 approval"], "{wrong}");
        }
        assert_eq!(
            check("[[approval]]\npaths = [\"x\"]\nreviewers = [\"a b\"]\n").1,
            ["3:14 approval"]
        );
        assert_eq!(check("[[approval]]\npath = [\"x\"]\n").1, ["2:1 toml"]);
        // what cannot be read asks for nothing that is known
        assert_eq!(approvals(b"titel = 1"), None);
        assert_eq!(approvals(b"title = \"T\""), Some(Vec::new()));
    }

    #[test]
    fn labels_are_checked() {
        let source = Source::new(
            &"labels.toml".into(),
            "[production]\na = \"v12\"\nb = \"12\"\nc = \"v1\"\n[v3]\na = \"v1\"\n",
        );
        let mut problems = Vec::new();
        let labels = labels(&source, &mut problems);
        let names = || ["a"].into_iter();
        check_labels(&source, &labels, |name| name == "a", names, &mut problems);
        let mut codes: Vec<_> = problems.iter().map(|p| (p.line, p.code)).collect();
        codes.sort_unstable();
        assert_eq!(
            codes,
            [(3, "label-version"), (4, "label-prompt"), (5, "label-name")]
        );
    }
}
