//! Resources from the files under `resources/`.

use std::collections::BTreeSet;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::prompt::parse::{lfs_pointer, sha256_hex};
use crate::prompt::problem::{Problem, Severity};
use crate::prompt::{Limits, Resource, ResourceBody};

use super::parts::{Content, Groups};
use super::{Catalog, findings, uri};

/// A resource file read by itself.
#[derive(Debug)]
pub(super) struct ResourceFile {
    pub(super) path: Arc<str>,
    pub(super) scheme: Arc<str>,
    /// Below the scheme's folder.
    pub(super) inner: String,
    pub(super) body: ResourceBody,
    pub(super) mime_type: Arc<str>,
    pub(super) sha256: Arc<str>,
}

/// Reads one file under `resources/`.
pub(super) fn read(
    path: &Arc<str>,
    bytes: Vec<u8>,
    limits: &Limits,
    problems: &mut Vec<Problem>,
) -> Option<ResourceFile> {
    let mut error = |code, message: String, hint: Option<&str>| {
        problems.push(Problem::whole(
            Severity::Error,
            code,
            path,
            message,
            hint.map(Into::into),
        ));
    };
    let below = path.strip_prefix("resources/")?;
    let Some((scheme, inner)) = below.split_once('/') else {
        error(
            "resource-place",
            "a resource lies in a folder that is its scheme: resources/<scheme>/<path>".into(),
            Some("resources/runbook/payments.md is runbook://payments"),
        );
        return None;
    };
    if let Some(fault) = uri::scheme_fault(scheme) {
        error(
            "resource-scheme",
            format!("`{scheme}` cannot be a scheme: {fault}"),
            Some("rename the folder"),
        );
        return None;
    }
    if let Err(fault) = uri::path_key(scheme, inner) {
        error(
            "resource-name",
            format!("`{inner}` cannot be a resource: {fault}"),
            Some("rename the file"),
        );
        return None;
    }
    if let Some(problem) = lfs_pointer(path, &bytes) {
        problems.push(problem);
        return None;
    }
    if bytes.len() > limits.resource_file_bytes {
        error(
            "file-size",
            format!(
                "the file is {} bytes; at most {} are served (resource_file_bytes)",
                bytes.len(),
                limits.resource_file_bytes
            ),
            None,
        );
        return None;
    }
    let mime_type = mime_type(inner);
    let sha256 = sha256_hex(&bytes);
    let text = !is_binary(&mime_type) && !bytes.contains(&0);
    let (body, mime_type) = match String::from_utf8(bytes) {
        Ok(text_body) if text => {
            // a text whose extension says nothing of it
            let unknown = &*mime_type == "application/octet-stream";
            let mime_type = if unknown {
                "text/plain".into()
            } else {
                mime_type
            };
            (ResourceBody::Text(text_body.into()), mime_type)
        }
        Ok(other) => (
            ResourceBody::Blob(other.into_bytes().into()),
            blob_type(mime_type),
        ),
        Err(error) => (
            ResourceBody::Blob(error.into_bytes().into()),
            blob_type(mime_type),
        ),
    };
    Some(ResourceFile {
        path: path.clone(),
        scheme: scheme.into(),
        inner: inner.to_owned(),
        body,
        mime_type,
        sha256,
    })
}

/// MIME type by extension; files without one are plain text.
fn mime_type(path: &str) -> Arc<str> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let Some((_, extension)) = file.rsplit_once('.') else {
        return "text/plain".into();
    };
    // types that mime_guess names otherwise than clients expect them
    match extension.to_ascii_lowercase().as_str() {
        "md" | "markdown" => "text/markdown".into(),
        "yaml" | "yml" => "application/yaml".into(),
        "toml" => "application/toml".into(),
        "ts" | "tsx" | "mts" | "cts" => "text/x-typescript".into(),
        "java" => "text/x-java".into(),
        "php" => "text/x-php".into(),
        other => mime_guess::from_ext(other)
            .first_raw()
            .unwrap_or("text/plain")
            .into(),
    }
}

/// Types whose content is never shown as text, whatever its bytes are.
fn is_binary(mime_type: &str) -> bool {
    let kind = mime_type.split('/').next().unwrap_or_default();
    (matches!(kind, "image" | "audio" | "video" | "font" | "model") && mime_type != "image/svg+xml")
        || mime_type == "application/pdf"
        || [
            "zip",
            "gzip",
            "x-tar",
            "x-7z",
            "x-bzip",
            "x-xz",
            "wasm",
            "vnd.ms-",
            "officedocument",
        ]
        .iter()
        .any(|part| mime_type.contains(part))
}

/// What an extension calls text and is none has no better name.
fn blob_type(mime_type: Arc<str>) -> Arc<str> {
    if mime_type.starts_with("text/") {
        "application/octet-stream".into()
    } else {
        mime_type
    }
}

impl ResourceFile {
    /// The form in which its URI with the extension is compared.
    fn long_key(&self) -> Arc<str> {
        key(&self.scheme, &self.inner)
    }

    /// Its path without the last extension, where it has one, and the form in which that is compared.
    fn short(&self) -> Option<(String, Arc<str>)> {
        let (folder, file) = self
            .inner
            .rsplit_once('/')
            .map_or(("", self.inner.as_str()), |(f, n)| (f, n));
        let stem = file
            .rsplit_once('.')
            .map(|(stem, _)| stem)
            .filter(|s| !s.is_empty())?;
        let short = if folder.is_empty() {
            stem.to_owned()
        } else {
            format!("{folder}/{stem}")
        };
        let key = key(&self.scheme, &short);
        (!key.is_empty()).then_some((short, key))
    }

    /// Every key it would have if nothing else wanted it.
    fn keys(&self) -> Vec<Arc<str>> {
        std::iter::once(self.long_key())
            .chain(self.short().map(|(_, key)| key))
            .collect()
    }
}

fn key(scheme: &str, inner: &str) -> Arc<str> {
    uri::path_key(scheme, inner).unwrap_or_default().into()
}

/// Which files want which key: by their whole path, or with the last extension dropped.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims {
    long: Groups,
    short: Groups,
}

/// What makes two states of a scheme's resources the same; a sum, so that one file's change costs one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct SchemeHash {
    files: usize,
    sum: [u64; 4],
}

impl SchemeHash {
    /// Counts a resource in.
    pub(super) fn add(&mut self, resource: &Resource) {
        self.files += 1;
        self.change(&resource.path, &resource.sha256, u64::wrapping_add);
    }

    fn change(&mut self, path: &str, sha256: &str, by: fn(u64, u64) -> u64) {
        let mut hash = Sha256::new();
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update(sha256.as_bytes());
        let digest = hash.finalize();
        for (lane, bytes) in self.sum.iter_mut().zip(digest.chunks_exact(8)) {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            *lane = by(*lane, u64::from_le_bytes(word));
        }
    }

    /// Its bytes, for a hash over it.
    pub(super) fn bytes(&self) -> [u8; 32] {
        let mut out = [0; 32];
        for (bytes, lane) in out.chunks_exact_mut(8).zip(self.sum) {
            bytes.copy_from_slice(&lane.to_le_bytes());
        }
        out
    }
}

/// What a change of files leaves to be settled.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    /// Keys that files came to want, or left.
    keys: BTreeSet<Arc<str>>,
    /// What was served of files that are gone or changed.
    gone: Vec<Served>,
}

/// A resource as it is served, with every key that finds it.
pub(super) type Served = (Arc<Resource>, Arc<[Arc<str>]>);

/// What may be found differently.
#[derive(Debug, Default)]
pub(super) struct Moved {
    /// By URI as listed.
    pub(super) uris: BTreeSet<Arc<str>>,
    /// By key.
    pub(super) keys: BTreeSet<Arc<str>>,
    /// Sources of findings that were set anew.
    pub(super) sources: Vec<Arc<str>>,
}

impl Unsettled {
    /// Takes a file out of the index.
    pub(super) fn remove(
        &mut self,
        catalog: &mut Catalog,
        file: &ResourceFile,
        served: Option<Served>,
    ) {
        self.gone.extend(served);
        let claims = &mut catalog.parts.claims;
        claims.long.remove(&file.long_key(), &file.path);
        if let Some((_, short)) = file.short() {
            claims.short.remove(&short, &file.path);
        }
        self.keys.extend(file.keys());
        let Some(hash) = catalog.scheme_hashes.get_mut(&file.scheme) else {
            return;
        };
        hash.files -= 1;
        hash.change(&file.path, &file.sha256, u64::wrapping_sub);
        if hash.files == 0 {
            catalog.scheme_hashes.remove_mut(&file.scheme);
        }
    }

    /// Puts a file into the index.
    pub(super) fn add(&mut self, catalog: &mut Catalog, file: &ResourceFile) {
        let claims = &mut catalog.parts.claims;
        claims.long.insert(&file.long_key(), &file.path);
        if let Some((_, short)) = file.short() {
            claims.short.insert(&short, &file.path);
        }
        self.keys.extend(file.keys());
        let mut hash = catalog
            .scheme_hashes
            .get(&file.scheme)
            .copied()
            .unwrap_or_default();
        hash.files += 1;
        hash.change(&file.path, &file.sha256, u64::wrapping_add);
        catalog.scheme_hashes.insert_mut(file.scheme.clone(), hash);
    }

    /// Gives every file that a change concerns its URIs: the last extension is dropped where that stays unique; clashes
    /// are problems.
    pub(super) fn settle(self, catalog: &mut Catalog) -> Moved {
        let mut moved = Moved::default();
        let Self { keys, mut gone } = self;
        let claims = catalog.parts.claims.clone();
        let paths: BTreeSet<&Arc<str>> = keys
            .iter()
            .flat_map(|key| claims.long.paths(key).chain(claims.short.paths(key)))
            .collect();
        for path in &paths {
            if let Some(piece) = catalog.parts.pieces.get_mut(*path)
                && let Content::Resource { served, .. } = &mut piece.content
            {
                gone.extend(served.take());
            }
        }
        // all that was there goes before anything comes: one may take another's URI
        for (resource, keys) in gone {
            catalog.resources.remove_mut(&resource.uri);
            moved.uris.insert(resource.uri.clone());
            for key in &*keys {
                catalog.by_uri.remove_mut(key);
                moved.keys.insert(key.clone());
            }
        }
        for path in paths {
            let Some(piece) = catalog.parts.pieces.get_mut(path) else {
                continue;
            };
            let Content::Resource {
                file: Some(file),
                served,
            } = &mut piece.content
            else {
                continue;
            };
            let Some((resource, keys)) = serve(file, &claims) else {
                continue;
            };
            *served = Some((resource.clone(), keys.clone()));
            moved.uris.insert(resource.uri.clone());
            for key in &*keys {
                catalog.by_uri.insert_mut(key.clone(), resource.clone());
                moved.keys.insert(key.clone());
            }
            catalog.resources.insert_mut(resource.uri.clone(), resource);
        }
        for key in &keys {
            let source = findings::group("uri", key);
            catalog.parts.findings.set(&source, clashes(key, &claims));
            moved.sources.push(source);
        }
        moved
    }
}

/// A file as it is served; none where another has the same URI.
fn serve(file: &ResourceFile, claims: &Claims) -> Option<Served> {
    let long_key = file.long_key();
    if claims.long.count(&long_key) > 1 {
        return None;
    }
    let short = file
        .short()
        .filter(|(_, key)| claims.short.count(key) == 1 && claims.long.count(key) == 0);
    let shown = short.as_ref().map_or(&*file.inner, |(short, _)| short);
    let resource = Resource {
        uri: uri::encode(&file.scheme, shown).into(),
        long_uri: uri::encode(&file.scheme, &file.inner).into(),
        path: file.path.clone(),
        name: shown.rsplit('/').next().unwrap_or(shown).into(),
        mime_type: file.mime_type.clone(),
        body: file.body.clone(),
        sha256: file.sha256.clone(),
    };
    let keys = std::iter::once(long_key).chain(short.map(|(_, key)| key));
    Some((Arc::new(resource), keys.collect()))
}

/// Files that are the same resource.
fn clashes(key: &str, claims: &Claims) -> Vec<Problem> {
    let first = claims.long.paths(key);
    let second = claims.long.paths(key).skip(1);
    first
        .zip(second)
        .map(|(first, path)| {
            Problem::whole(
                Severity::Error,
                "resource-clash",
                path,
                format!("this and {first} are the same resource URI (its first part has no case, and Unicode forms are one)"),
                Some("rename one of them".into()),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{MemoryTree, Revision, build, examples};
    use super::*;

    fn uris(paths: &[&str]) -> (Vec<String>, Vec<&'static str>) {
        let tree = paths.iter().fold(MemoryTree::default(), |tree, path| {
            tree.with(path, b"x".to_vec())
        });
        let limits = Limits::default();
        let built = build(&tree, Revision::WorkTree, &limits, None, &examples::none).unwrap();
        let resources = built.catalog.resources();
        (
            resources.iter().map(|r| r.uri.to_string()).collect(),
            built.problems.iter().map(|p| p.code).collect(),
        )
    }

    #[test]
    fn the_last_extension_is_dropped_where_that_stays_unique() {
        assert_eq!(
            uris(&[
                "resources/runbook/payments.md",
                "resources/runbook/a.md",
                "resources/runbook/a.txt",
                "resources/runbook/b",
                "resources/runbook/b.md",
                "resources/runbook/v1.2.md",
                "resources/runbook/결제.md",
            ])
            .0,
            [
                "runbook://%EA%B2%B0%EC%A0%9C",
                "runbook://a.md",
                "runbook://a.txt",
                "runbook://b",
                "runbook://b.md",
                "runbook://payments",
                "runbook://v1.2",
            ]
        );
    }

    #[test]
    fn clashes_and_bad_places() {
        assert_eq!(
            uris(&["resources/runbook/A.md", "resources/runbook/a.md"]).1,
            ["resource-clash"]
        );
        assert_eq!(uris(&["resources/x.md"]).1, ["resource-place"]);
        assert_eq!(uris(&["resources/file/x.md"]).1, ["resource-scheme"]);
        assert_eq!(uris(&["resources/Run/x.md"]).1, ["resource-scheme"]);
        assert_eq!(uris(&["resources/run/a\\b.md"]).1, ["resource-name"]);
    }

    #[test]
    fn types_by_extension() {
        for (path, expected) in [
            ("a.md", "text/markdown"),
            ("a.json", "application/json"),
            ("a.png", "image/png"),
            ("a", "text/plain"),
            ("a.yml", "application/yaml"),
            ("a.unknownext", "text/plain"),
            ("a.mp3", "audio/mpeg"),
        ] {
            assert_eq!(&*mime_type(path), expected, "{path}");
        }
    }
}
