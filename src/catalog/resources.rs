//! Resources from the files under `resources/`.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::prompt::parse::{hex, lfs_pointer, sha256_hex};
use crate::prompt::problem::{Problem, Severity};
use crate::prompt::{Limits, Resource, ResourceBody};

use super::uri;

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

/// The index over all resource files.
pub(super) struct Index {
    pub(super) resources: Vec<Arc<Resource>>,
    pub(super) by_uri: HashMap<Arc<str>, u32>,
    pub(super) scheme_hashes: BTreeMap<Arc<str>, Arc<str>>,
}

/// Gives every file its URIs: the last extension is dropped where that stays unique; clashes are problems.
pub(super) fn index(files: &[Arc<ResourceFile>], problems: &mut Vec<Problem>) -> Index {
    let key = |scheme: &str, inner: &str| uri::path_key(scheme, inner).unwrap_or_default();
    let mut long: HashMap<String, usize> = HashMap::new();
    let mut clashing = vec![false; files.len()];
    for (i, file) in files.iter().enumerate() {
        if let Some(other) = long.insert(key(&file.scheme, &file.inner), i) {
            let first = &files[other].path;
            problems.push(Problem::whole(
                Severity::Error,
                "resource-clash",
                &file.path,
                format!("this and {first} are the same resource URI (its first part has no case, and Unicode forms are one)"),
                Some("rename one of them".into()),
            ));
            clashing[i] = true;
            clashing[other] = true;
        }
    }
    let short_of = |inner: &str| {
        let (folder, file) = inner.rsplit_once('/').map_or(("", inner), |(f, n)| (f, n));
        let stem = file
            .rsplit_once('.')
            .map(|(stem, _)| stem)
            .filter(|s| !s.is_empty())?;
        Some(if folder.is_empty() {
            stem.to_owned()
        } else {
            format!("{folder}/{stem}")
        })
    };
    let mut short_count: HashMap<String, usize> = HashMap::new();
    for file in files {
        if let Some(short) = short_of(&file.inner) {
            *short_count.entry(key(&file.scheme, &short)).or_default() += 1;
        }
    }
    let mut entries: Vec<(Arc<Resource>, Vec<String>)> = Vec::new();
    let mut hashes: BTreeMap<Arc<str>, Sha256> = BTreeMap::new();
    for (i, file) in files.iter().enumerate() {
        let hash = hashes.entry(file.scheme.clone()).or_default();
        hash.update(file.path.as_bytes());
        hash.update([0]);
        hash.update(file.sha256.as_bytes());
        if clashing[i] {
            continue;
        }
        let long_key = key(&file.scheme, &file.inner);
        let short = short_of(&file.inner).filter(|short| {
            let short = key(&file.scheme, short);
            !short.is_empty() && short_count.get(&short) == Some(&1) && !long.contains_key(&short)
        });
        let shown = short.as_deref().unwrap_or(&file.inner);
        let long_uri: Arc<str> = uri::encode(&file.scheme, &file.inner).into();
        let uri: Arc<str> = uri::encode(&file.scheme, shown).into();
        let mut keys = vec![long_key];
        keys.extend(short.as_deref().map(|s| key(&file.scheme, s)));
        let resource = Resource {
            uri,
            long_uri,
            path: file.path.clone(),
            name: shown.rsplit('/').next().unwrap_or(shown).into(),
            mime_type: file.mime_type.clone(),
            body: file.body.clone(),
            sha256: file.sha256.clone(),
        };
        entries.push((Arc::new(resource), keys));
    }
    entries.sort_by(|a, b| a.0.uri.cmp(&b.0.uri));
    let mut by_uri = HashMap::new();
    let mut resources = Vec::with_capacity(entries.len());
    for ((resource, keys), i) in entries.into_iter().zip(0u32..) {
        for key in keys {
            by_uri.insert(key.into(), i);
        }
        resources.push(resource);
    }
    let scheme_hashes = hashes
        .into_iter()
        .map(|(scheme, hash)| (scheme, hex(&hash.finalize())))
        .collect();
    Index {
        resources,
        by_uri,
        scheme_hashes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uris(paths: &[&str]) -> (Vec<String>, Vec<&'static str>) {
        let mut problems = Vec::new();
        let files: Vec<_> = paths
            .iter()
            .filter_map(|p| {
                read(
                    &(*p).into(),
                    b"x".to_vec(),
                    &Limits::default(),
                    &mut problems,
                )
                .map(Arc::new)
            })
            .collect();
        let index = index(&files, &mut problems);
        (
            index.resources.iter().map(|r| r.uri.to_string()).collect(),
            problems.iter().map(|p| p.code).collect(),
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
