//! A catalog as somebody sees it who may not read all of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use rpds::{HashTrieMapSync, RedBlackTreeMapSync};

use crate::prompt::{Prompt, Resource};

use super::Catalog;
use super::listed::Ordered;
use super::parts::Pattern;
use super::resources::SchemeHash;

impl Catalog {
    /// The same catalog without the prompts and resources whose paths `sees` says no to, and without the families of
    /// resources that then have none; partials beside them are not found by drafts: what is left out is nowhere in it, and looks like what is not there.
    ///
    /// Costs time in proportion to what is left out, and where any resource is, to all resources.
    #[must_use]
    pub fn seen(&self, sees: impl Fn(&str) -> bool) -> Self {
        let mut out = self.clone();
        let hidden: Vec<Arc<Prompt>> = self
            .list(None)
            .iter()
            .filter(|prompt| !sees(&prompt.path))
            .cloned()
            .collect();
        for prompt in &hidden {
            out.unlist(prompt);
        }
        let partials: Vec<Arc<str>> = self
            .parts
            .partials
            .iter()
            .filter(|(_, partial)| !sees(&partial.source.path))
            .map(|(name, _)| name.clone())
            .collect();
        // prompts have theirs already; a draft has not
        for name in partials {
            out.parts.partials.remove_mut(&name);
        }
        if self.resources().iter().any(|r| !sees(&r.path)) {
            out.hide_resources(&sees);
        }
        let families = &self.library.families;
        let known: BTreeSet<&str> = out.scheme_hashes.keys().map(|scheme| &**scheme).collect();
        let shown = |scheme: &str| known.contains(scheme) || sees(&format!("resources/{scheme}/x"));
        if families.iter().any(|family| !shown(family.parsed.scheme())) {
            let mut library = (*self.library).clone();
            library
                .families
                .retain(|family| shown(family.parsed.scheme()));
            out.library = Arc::new(library);
        }
        out
    }

    fn hide_resources(&mut self, sees: &impl Fn(&str) -> bool) {
        let mut resources: Ordered<Resource> = RedBlackTreeMapSync::default();
        let mut schemes: RedBlackTreeMapSync<Arc<str>, SchemeHash> = RedBlackTreeMapSync::default();
        for (key, resource) in self.resources.iter().filter(|(_, r)| sees(&r.path)) {
            resources.insert_mut(key.clone(), resource.clone());
            let Some((scheme, _)) = key.split_once("://") else {
                continue;
            };
            if let Some(hash) = schemes.get_mut(scheme) {
                hash.add(resource);
            } else {
                let mut hash = SchemeHash::default();
                hash.add(resource);
                schemes.insert_mut(scheme.into(), hash);
            }
        }
        let mut by_uri: HashTrieMapSync<Arc<str>, Arc<Resource>> = HashTrieMapSync::default();
        for (key, resource) in self.by_uri.iter().filter(|(_, r)| sees(&r.path)) {
            by_uri.insert_mut(key.clone(), resource.clone());
        }
        self.resources = resources;
        self.by_uri = by_uri;
        self.scheme_hashes = schemes;
        // what they find is found among the others
        let patterns: Vec<(Arc<str>, Pattern)> = self
            .parts
            .patterns
            .iter()
            .map(|(name, pattern)| (name.clone(), pattern.clone()))
            .collect();
        for (name, pattern) in patterns {
            let values = Arc::default();
            self.parts
                .patterns
                .insert_mut(name, Pattern { values, ..pattern });
        }
    }

    /// A hash over all that somebody sees of its prompts in a folder (or everywhere): what is listed, and with `bodies`
    /// what would render.
    pub fn prompts_hash(&self, folder: Option<&str>, bodies: bool) -> [u8; 32] {
        use sha2::{Digest as _, Sha256};
        let mut hash = Sha256::new();
        for prompt in self.list(folder).iter() {
            hash.update(prompt.list_hash.as_bytes());
            if bodies {
                hash.update(self.render_hash(prompt).as_bytes());
            }
        }
        hash.finalize().into()
    }

    /// A hash over the list of its resources and their families, contents aside.
    pub fn resources_hash(&self) -> [u8; 32] {
        use sha2::{Digest as _, Sha256};
        let mut hash = Sha256::new();
        for resource in self.resources().iter() {
            hash.update(resource.uri.as_bytes());
            hash.update([0]);
            hash.update(resource.mime_type.as_bytes());
            hash.update([0]);
        }
        for family in self.families() {
            hash.update([1]);
            hash.update(family.template.as_bytes());
        }
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::build::build_and_run;
    use super::super::{Lookup, MemoryTree, Revision};
    use super::*;
    use crate::prompt::{BoundArguments, Limits};

    const FILES: [(&str, &str); 8] = [
        (
            "cuebook.toml",
            "[[resource]]\ntemplate = \"runbook://{service}\"\n[[resource]]\ntemplate = \"plan://{name}\"\n",
        ),
        (
            "prompts/open/triage.md",
            "---\narguments: [{ name: service, values: { resource: \"runbook://{service}\" } }]\nresources: [{ name: runbook, uri: \"runbook://{{ service }}\", required: true }]\n---\nLook at {{ service }}.\n",
        ),
        (
            "prompts/open/other.md",
            "---\ndescription: D\n---\nOther.\n",
        ),
        (
            "prompts/secret/triages.md",
            "---\ndescription: D\n---\nSecret.\n",
        ),
        (
            "prompts/secret/deep/plan.md",
            "---\ndescription: D\n---\nPlan.\n",
        ),
        ("resources/runbook/payments.md", "# Payments\n"),
        ("resources/runbook/payrolls.md", "# Payrolls\n"),
        ("resources/plan/merger.md", "# Merger\n"),
    ];

    fn catalog(with: impl Fn(&str) -> bool) -> Catalog {
        let files = FILES.iter().filter(|(path, _)| with(path));
        let tree = files.fold(MemoryTree::default(), |tree, (path, text)| {
            tree.with(path, *text)
        });
        build_and_run(&tree, Revision::WorkTree, &Limits::default(), None)
            .unwrap()
            .catalog
    }

    /// All that somebody can find out.
    fn facts(catalog: &Catalog) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for folder in [None, Some("open"), Some("secret"), Some("secret/deep")] {
            let listed = catalog.list(folder);
            let names: Vec<String> = listed.iter().map(|p| p.name.to_string()).collect();
            out.push(format!("{folder:?} {names:?}"));
            out.push(format!("{:?}", catalog.prompts_hash(folder, true)));
            out.push(format!("{:?}", catalog.suggest("triags", folder)));
        }
        let listed = catalog.resources();
        out.push(format!(
            "{:?}",
            listed.iter().map(|r| r.uri.clone()).collect::<Vec<_>>()
        ));
        for uri in [
            "runbook://payments",
            "runbook://Payrolls.md",
            "plan://merger",
        ] {
            let found = match catalog.resource(uri) {
                Lookup::Found(resource) => resource.path.to_string(),
                other => format!("{other:?}"),
            };
            out.push(format!("{uri} {found}"));
        }
        out.push(format!("{:?}", catalog.near("runbook://payment")));
        let none = BTreeMap::new();
        for template in ["runbook://{service}", "plan://{name}"] {
            let variable = if template.starts_with("plan") {
                "name"
            } else {
                "service"
            };
            out.push(format!(
                "{:?}",
                catalog.complete_uri(template, variable, "", &none).values
            ));
        }
        for name in ["triage", "other", "triages", "plan"] {
            let Some(prompt) = catalog.prompt(name) else {
                out.push(format!("no {name}"));
                continue;
            };
            out.push(format!("{name} {}", catalog.render_hash(prompt)));
            let found = catalog.complete(prompt, "service", "", &none, &[]);
            out.push(format!("{:?} {}", found.values, found.total));
            for service in ["payments", "payrolls"] {
                let bound = BoundArguments::bind(
                    &prompt.arguments,
                    [("service", service)],
                    catalog.limits(),
                );
                let resolved = catalog.resolve(prompt, &bound.unwrap());
                out.push(match resolved {
                    Ok(resolved) => format!("{:?}", resolved.entries.len()),
                    Err(error) => error.to_string(),
                });
            }
        }
        out
    }

    #[test]
    fn what_is_left_out_looks_like_what_is_not_there() {
        let cases: [fn(&str) -> bool; 6] = [
            |path| !path.starts_with("prompts/secret/"),
            |path| path != "resources/runbook/payrolls.md",
            |path| path.starts_with("prompts/open/") || path.starts_with("resources/runbook/"),
            |path| path.starts_with("prompts/secret/"),
            |path| path.starts_with("resources/plan/"),
            |_| false,
        ];
        let whole = catalog(|_| true);
        for (n, sees) in cases.into_iter().enumerate() {
            // the policy is no prompt and no resource
            let without = catalog(|path| path == "cuebook.toml" || sees(path));
            // what was found before must not be found again
            let _ = facts(&whole);
            assert_eq!(facts(&whole.seen(sees)), facts(&without), "case {n}");
        }
        assert_eq!(facts(&whole.seen(|_| true)), facts(&whole));
    }

    #[test]
    fn a_family_of_which_nothing_is_seen_is_not_seen() {
        let families = |sees: fn(&str) -> bool| -> Vec<String> {
            let seen = catalog(|_| true).seen(sees);
            seen.families().iter().map(|f| f.template.clone()).collect()
        };
        assert_eq!(
            families(|path| path.starts_with("resources/runbook/")),
            ["runbook://{service}"]
        );
        assert!(families(|_| false).is_empty());
        // one that may get some is seen before it has any
        assert_eq!(
            families(|path| path == "resources/plan/x"),
            ["plan://{name}"]
        );
    }
}
