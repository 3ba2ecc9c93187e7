//! Random histories: counted from cold, step by step and from any moment on, they have the numbers that a slow reading
//! of the rules gives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cuebook::history::History;
use cuebook::registry::numbering::Numbering;
use cuebook::store::Store;
use cuebook::versions;
use proptest::prelude::*;
use tempfile::TempDir;

use super::repository::{Files, Histories, Made};

const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];
const FOLDERS: [&str; 2] = ["prompts/", "prompts/sre/"];
const PARTIALS: [&str; 3] = ["p0.md", "p1.md", "x/p2.md"];

/// Texts: what they are, whether they parse, and what they include.
const TEXTS: [(&str, bool, &[usize]); 8] = [
    ("one", true, &[]),
    ("---\ntitle: t\n---\ntwo {{ x }}", true, &[]),
    ("{% include \"p0.md\" %} three", true, &[0]),
    (
        "{% include \"p1.md\" %}{% include \"x/p2.md\" %}",
        true,
        &[1, 2],
    ),
    ("{% include 'x/p2.md' %}", true, &[2]),
    ("{% if broken", false, &[]),
    ("{% if x %} open {% include \"p0.md\" %}", false, &[0]),
    ("{% raw %}{% include \"p0.md\" %}{% endraw %}", true, &[]),
];

#[derive(Debug, Clone)]
enum Edit {
    Write(usize, usize, usize),
    Remove(usize),
    Rename(usize, usize),
    Move(usize),
    Partial(usize, usize),
    RemovePartial(usize),
    Revert(prop::sample::Index),
    Other(u8),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (0..NAMES.len(), 0..FOLDERS.len(), 0..TEXTS.len()).prop_map(|(n, f, t)| Edit::Write(n, f, t)),
        1 => (0..NAMES.len()).prop_map(Edit::Remove),
        2 => (0..NAMES.len(), 0..NAMES.len()).prop_map(|(a, b)| Edit::Rename(a, b)),
        1 => (0..NAMES.len()).prop_map(Edit::Move),
        2 => (0..PARTIALS.len(), 0..TEXTS.len()).prop_map(|(p, t)| Edit::Partial(p, t)),
        1 => (0..PARTIALS.len()).prop_map(Edit::RemovePartial),
        1 => any::<prop::sample::Index>().prop_map(Edit::Revert),
        1 => any::<u8>().prop_map(Edit::Other),
    ]
}

fn paths_of(files: &Files, name: &str) -> Vec<String> {
    files
        .keys()
        .filter(|path| path.starts_with("prompts/") && path.ends_with(&format!("/{name}.md")))
        .cloned()
        .collect()
}

fn apply(edit: &Edit, files: &mut Files, before: &[Made]) {
    match edit {
        Edit::Write(name, folder, text) => {
            // mostly where it is already
            let path = match paths_of(files, NAMES[*name]).first() {
                Some(path) if text % 4 != 3 => path.clone(),
                _ => format!("{}{}.md", FOLDERS[*folder], NAMES[*name]),
            };
            files.insert(path, TEXTS[*text].0.into());
        }
        Edit::Remove(name) => {
            for path in paths_of(files, NAMES[*name]) {
                files.remove(&path);
            }
        }
        Edit::Rename(from, to) => {
            for path in paths_of(files, NAMES[*from]) {
                let text = files.remove(&path).unwrap();
                files.insert(
                    path.replace(
                        &format!("/{}.md", NAMES[*from]),
                        &format!("/{}.md", NAMES[*to]),
                    ),
                    text,
                );
            }
        }
        Edit::Move(name) => {
            for path in paths_of(files, NAMES[*name]) {
                let text = files.remove(&path).unwrap();
                let folder = FOLDERS[usize::from(!path.starts_with(FOLDERS[1]))];
                files.insert(format!("{folder}{}.md", NAMES[*name]), text);
            }
        }
        Edit::Partial(partial, text) => {
            files.insert(
                format!("partials/{}", PARTIALS[*partial]),
                TEXTS[*text].0.into(),
            );
        }
        Edit::RemovePartial(partial) => {
            files.remove(&format!("partials/{}", PARTIALS[*partial]));
        }
        Edit::Revert(to) if !before.is_empty() => *files = to.get(before).files.clone(),
        Edit::Revert(_) => {}
        Edit::Other(text) => {
            files.insert("resources/runbook/r.md".into(), text.to_string());
        }
    }
}

fn histories() -> impl Strategy<Value = Vec<Made>> {
    let commit = (
        prop::collection::vec(edit(), 0..4),
        prop::bool::weighted(0.15),
    );
    prop::collection::vec(commit, 1..25).prop_map(|commits| {
        let mut out: Vec<Made> = Vec::new();
        for (edits, merge) in commits {
            let mut files = out
                .last()
                .map(|made| made.files.clone())
                .unwrap_or_default();
            for edit in &edits {
                apply(edit, &mut files, &out);
            }
            out.push(Made { files, merge });
        }
        out
    })
}

/// What a text is, by the table.
fn facts(text: &str) -> (bool, &'static [usize]) {
    TEXTS
        .iter()
        .find(|known| known.0 == text)
        .map(|known| (known.1, known.2))
        .unwrap()
}

/// The whole text that a prompt is made of; an error where it cannot be read, none where it is gone.
fn effective(files: &Files, name: &str) -> Option<Result<BTreeMap<String, String>, ()>> {
    let paths = paths_of(files, name);
    let path = paths.first()?;
    if paths.len() > 1 {
        return Some(Err(()));
    }
    let (sound, includes) = facts(&files[path]);
    let mut made = BTreeMap::from([(String::new(), files[path].clone())]);
    let mut all_sound = sound;
    let mut todo: BTreeSet<usize> = includes.iter().copied().collect();
    let mut seen = BTreeSet::new();
    while let Some(partial) = todo.pop_first() {
        if !seen.insert(partial) {
            continue;
        }
        let path = format!("partials/{}", PARTIALS[partial]);
        match files.get(&path) {
            Some(text) => {
                let (sound, includes) = facts(text);
                all_sound &= sound;
                todo.extend(includes);
                made.insert(path, text.clone());
            }
            None => all_sound = false,
        }
    }
    Some(if all_sound { Ok(made) } else { Err(()) })
}

/// The rules, read slowly: every name at every commit.
fn oracle(commits: &[Made]) -> BTreeMap<String, Vec<(usize, String)>> {
    type Made = BTreeMap<String, String>;
    let mut versions: BTreeMap<String, Vec<(usize, String)>> = BTreeMap::new();
    let mut last: BTreeMap<String, Option<Made>> = BTreeMap::new();
    let mut before = Files::new();
    for (at, made) in commits.iter().enumerate() {
        let files = &made.files;
        let mut sorted = NAMES;
        sorted.sort_unstable();
        let texts = |files: &Files, name: &str| -> BTreeSet<String> {
            paths_of(files, name)
                .iter()
                .map(|path| files[path].clone())
                .collect()
        };
        let mut taken = BTreeSet::new();
        for to in sorted {
            let came = paths_of(files, to);
            if came.is_empty() || !paths_of(&before, to).is_empty() || versions.contains_key(to) {
                continue;
            }
            let from = came.iter().find_map(|path| {
                sorted.into_iter().find(|from| {
                    !taken.contains(from)
                        && versions.contains_key(*from)
                        && paths_of(files, from).is_empty()
                        && texts(&before, from).contains(&files[path])
                })
            });
            if let Some(from) = from {
                taken.insert(from);
                versions.insert(to.into(), versions[from].clone());
                last.insert(to.into(), last[from].clone());
            }
        }
        for name in sorted {
            match effective(files, name) {
                None => {
                    last.insert(name.into(), None);
                }
                Some(Err(())) => {}
                Some(Ok(text)) => {
                    if last.get(name).cloned().flatten().as_ref() != Some(&text) {
                        let path = paths_of(files, name).remove(0);
                        versions.entry(name.into()).or_default().push((at, path));
                        last.insert(name.into(), Some(text));
                    }
                }
            }
        }
        before = files.clone();
    }
    versions
}

/// The versions as they are kept and read again.
fn reloaded(history: &History) -> Numbering {
    let names: Vec<_> = history
        .names()
        .map(|(name, n)| (name.clone(), (**n).clone()))
        .collect();
    Numbering::kept(History::kept(
        history.tip().unwrap(),
        names,
        history.labels().cloned(),
    ))
}

/// What a database says in the end that follows a count step by step, and whose files are deleted at a moment, while it is
/// open or between two openings of it.
fn followed(steps: &[Arc<History>], deleted_at: usize, while_open: bool) -> Option<History> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("cuebook.db");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut store = Store::open(&path).await.unwrap();
        let mut written: Option<&Arc<History>> = None;
        for (at, now) in steps.iter().enumerate() {
            if at == deleted_at {
                if !while_open {
                    store.close().await;
                }
                for end in ["", "-wal", "-shm"] {
                    let _ = std::fs::remove_file(format!("{}{end}", path.display()));
                }
                // as at a start: what the rows say is what is gone on from
                let opened = Store::open(&path).await.unwrap();
                let kept = versions::load(&opened).await.unwrap();
                assert_eq!(kept, None);
                (store, written) = (opened, None);
            }
            versions::write(&store, written.map(|history| &**history), now)
                .await
                .unwrap();
            written = Some(now);
        }
        versions::load(&store).await.unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_way_of_counting_gives_the_same(commits in histories(), moment in any::<prop::sample::Index>(), jump in any::<prop::sample::Index>(), gone in any::<prop::sample::Index>(), while_open in any::<bool>()) {
        let made = Histories::new(&commits);
        let repository = made.repository();
        let last = made.ids.len() - 1;
        let cold = made.cold(last);
        let expected = oracle(&commits);
        prop_assert_eq!(made.shown(&cold.history), expected);

        // step by step, with everything in memory thrown away at one moment and all kept rows at another
        let mut numbering = made.cold(0);
        let (moment, jump) = (moment.index(made.ids.len()), jump.index(made.ids.len()));
        let mut steps = Vec::new();
        for (at, id) in made.ids.iter().enumerate() {
            prop_assert!(numbering.advance(&repository, id).unwrap());
            steps.push(numbering.history.clone());
            if at == moment {
                numbering = reloaded(&numbering.history);
            }
            if at == jump {
                numbering = made.cold(at);
            }
        }
        prop_assert_eq!(&numbering.history, &cold.history);
        let rows = followed(&steps, gone.index(steps.len()), while_open);
        prop_assert_eq!(rows.as_ref(), Some(&*cold.history));

        // from a moment to the end at once
        let mut numbering = reloaded(&made.cold(moment).history);
        prop_assert!(numbering.advance(&repository, &made.ids[last]).unwrap());
        prop_assert_eq!(&numbering.history, &cold.history);

        // main was rewound: nothing is counted on from what it has left
        if moment < last {
            let mut ahead = made.cold(last);
            let before = ahead.history.clone();
            prop_assert!(!ahead.advance(&repository, &made.ids[moment]).unwrap());
            prop_assert_eq!(before, ahead.history);
        }
    }
}
