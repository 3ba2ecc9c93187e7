//! A library in a bare repository, and a clone of it in which a test works.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A bare repository with a clone.
pub(crate) struct TestLibrary {
    folder: TempDir,
}

impl TestLibrary {
    /// An empty repository.
    pub(crate) fn empty() -> Self {
        let library = Self {
            folder: TempDir::new().unwrap(),
        };
        git(
            library.folder.path(),
            &[
                "init",
                "--quiet",
                "--bare",
                "--initial-branch=main",
                "library.git",
            ],
        );
        git(
            library.folder.path(),
            &["init", "--quiet", "--initial-branch=main", "clone"],
        );
        git(
            &library.clone(),
            &["remote", "add", "origin", "../library.git"],
        );
        library
    }

    /// With these files as its first commit.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let library = Self::empty();
        library.publish(files);
        library
    }

    /// The small library of most tests.
    pub(crate) fn small() -> Self {
        let library = Self::empty();
        library.write_bytes("resources/image/dot.png", b"\x89PNG\r\n\x1a\n\x00\xff");
        library.write_bytes("resources/sound/beep.wav", b"RIFF\x00\x00\x00\x00WAVE");
        library.publish(SMALL);
        library
    }

    /// The bare repository.
    pub(crate) fn bare(&self) -> PathBuf {
        self.folder.path().join("library.git")
    }

    /// The clone.
    pub(crate) fn clone(&self) -> PathBuf {
        self.folder.path().join("clone")
    }

    /// Writes a file of the clone.
    pub(crate) fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let path = self.clone().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Removes a file of the clone.
    pub(crate) fn remove(&self, path: &str) {
        std::fs::remove_file(self.clone().join(path)).unwrap();
    }

    /// Commits everything in the clone; the commit's id.
    pub(crate) fn commit(&self, message: &str) -> String {
        git(&self.clone(), &["add", "--all"]);
        git(
            &self.clone(),
            &["commit", "--quiet", "--allow-empty", "--message", message],
        );
        git(&self.clone(), &["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// Pushes the clone's main.
    pub(crate) fn push(&self) {
        git(&self.clone(), &["push", "--quiet", "origin", "HEAD:main"]);
    }

    /// Writes files, commits them and makes main what the clone has, whatever main was.
    pub(crate) fn publish_by_force(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.write_bytes(path, text.as_bytes());
        }
        self.commit("publish");
        git(
            &self.clone(),
            &["push", "--quiet", "--force", "origin", "HEAD:main"],
        );
    }

    /// Writes files, commits and pushes them; the commit's id.
    pub(crate) fn publish(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            self.write_bytes(path, text.as_bytes());
        }
        let commit = self.commit("publish");
        self.push();
        commit
    }
}

/// Runs git without anything of the machine's own configuration.
pub(crate) fn git(at: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(at)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Test")
        .env("GIT_AUTHOR_EMAIL", "test@example.com")
        .env("GIT_COMMITTER_NAME", "Test")
        .env("GIT_COMMITTER_EMAIL", "test@example.com")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Text of the prompt that most tests get.
pub(crate) const TRIAGE: &str = r#"---
title: 장애 초동 조치
description: First response to an incident ticket
tags: [sre, incident]
arguments:
  - name: ticketId
    description: Ticket, e.g. INC-9942
    required: true
  - name: service
    description: Service the alert fired for
    values: { resource: "runbook://{service}" }
  - name: severity
    description: CRITICAL, HIGH, MEDIUM or LOW
    values: [CRITICAL, HIGH, MEDIUM, LOW]
    default: HIGH
resources:
  - name: runbook
    uri: "runbook://{{ service }}"
    required: false
    as: resource
---
You are helping with {{ severity }} incident {{ ticketId }}.
{% if service %}The runbook for {{ service }} is attached.{% endif %}

<!-- resource: runbook -->

<!-- role: assistant -->
I will work through the runbook in order.
"#;

/// Files of the small library that are text.
pub(crate) const SMALL: &[(&str, &str)] = &[
    (
        "cuebook.toml",
        "format = 1\ntitle = \"Test library\"\ninstructions = \"Ask for a prompt.\"\n\n[[resource]]\ntemplate = \"runbook://{service}\"\ntitle = \"Runbook\"\ndescription = \"What to do\"\n",
    ),
    ("prompts/sre/incident-triage.md", TRIAGE),
    (
        "prompts/sre/after/postmortem.md",
        "---\ndescription: After an incident\n---\nWrite the postmortem.\n",
    ),
    (
        "prompts/review/code-review.md",
        "---\ndescription: Review a change\ntags: [review]\narguments:\n  - name: language\n    values: [Rust, Ruby, Go]\n    default: any language\n  - name: focus\n    values: { file: focus.txt, where: language }\n---\nReview this {{ language }} change{% if focus %}, above all for {{ focus }}{% endif %}.\n",
    ),
    (
        "prompts/review/everything.md",
        "---\ndescription: One of each kind of content\nresources:\n  - name: picture\n    uri: \"image://dot\"\n    as: image\n    required: true\n  - name: sound\n    uri: \"sound://beep\"\n    as: audio\n    required: true\n  - name: link\n    uri: \"runbook://payments\"\n    as: link\n    required: true\n  - name: text\n    uri: \"runbook://search\"\n    as: text\n    required: true\n---\nLook at these.\n\n<!-- role: system -->\nYou are careful.\n\n<!-- role: user -->\n\n<!-- resource: picture -->\n\n<!-- resource: sound -->\n\n<!-- resource: link -->\n\n<!-- resource: text -->\n",
    ),
    (
        "prompts/review/quote.md",
        "---\ndescription: Quotes untrusted text\narguments:\n  - name: log\n    required: true\n---\nRead this log:\n{{ log | untrusted(label=\"log\") }}\n",
    ),
    (
        "prompts/review/echo.md",
        "---\ndescription: Says it again\narguments:\n  - name: text\n    required: true\n  - name: other\n---\n{{ text }}{{ other }}",
    ),
    (
        "prompts/sre/strict.md",
        "---\ndescription: Needs its runbook\narguments:\n  - name: service\n    required: true\nresources:\n  - name: runbook\n    uri: \"runbook://{{ service }}\"\n    required: true\n---\nFollow it.\n\n<!-- resource: runbook -->\n",
    ),
    (
        "values/focus.txt",
        "ownership\tWho owns what\tRust\nlifetimes\tHow long\tRust\nmetaprogramming\tToo clever\tRuby\n",
    ),
    (
        "resources/runbook/payments.md",
        "# Payments\n\n1. Look at the connection pool.\n",
    ),
    (
        "resources/runbook/search.md",
        "# Search\n\n1. Look at the lag.\n",
    ),
];
