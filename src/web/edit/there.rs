//! What a library holds besides its prompts, to be opened in the editor.

use serde::Serialize;

use super::super::{Visit, Web};
use super::May;
use super::place::{Kind, reads};

/// Files of one kind that are listed.
const LISTED: usize = 500;

/// Files of a kind.
#[derive(Debug, Serialize)]
pub(super) struct Group {
    kind: Kind,
    /// How many there are.
    count: usize,
    /// Their paths, the first of them.
    files: Vec<String>,
}

/// The partials, values, resources and settings of the library that somebody may read, by kind.
pub(super) fn there(web: &Web, visit: &Visit) -> Vec<Group> {
    let snapshot = web.api.registry.snapshot();
    let catalog = &snapshot.latest;
    let within = |folder: &str, names: Vec<&str>| -> Vec<String> {
        let names = names.into_iter();
        names.map(|name| format!("{folder}/{name}")).collect()
    };
    let partials = within("partials", catalog.partial_names().collect());
    let values = within("values", catalog.values_files());
    // what is no text is not edited here
    let resources = catalog
        .resources()
        .iter()
        .filter(|resource| resource.text().is_some())
        .map(|resource| resource.path.to_string())
        .collect();
    let own = |path: &str, kind: Kind| -> Vec<String> {
        let may = May::of(&visit.actor, kind, path);
        let offered = may.publish || may.propose;
        offered.then(|| path.to_owned()).into_iter().collect()
    };
    let groups = [
        (Kind::Partial, partials),
        (Kind::Values, values),
        (Kind::Resource, resources),
        (Kind::Labels, own("labels.toml", Kind::Labels)),
        (Kind::Library, own("cuebook.toml", Kind::Library)),
    ];
    let seen = groups
        .into_iter()
        .map(|(kind, mut files): (Kind, Vec<String>)| {
            files.retain(|path| reads(&visit.actor, path));
            let count = files.len();
            files.truncate(LISTED);
            Group { kind, count, files }
        });
    seen.filter(|group| group.count > 0).collect()
}
