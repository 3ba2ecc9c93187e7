//! Versions in the database: what is written is read again, damage is found, named and repaired.

use std::sync::Arc;

use cuebook::history::History;
use cuebook::registry::source::Library;
use cuebook::registry::{Registry, Settings};
use cuebook::store::Store;
use cuebook::versions;
use sqlx::Connection as _;
use tempfile::TempDir;

use super::repository::{Files, Histories, Made};

fn commits() -> Vec<Made> {
    let mut out = Vec::new();
    for i in 0..6 {
        let files: Files = [
            (
                "prompts/a.md".to_owned(),
                format!("{{% include \"p.md\" %}} {}", i / 2),
            ),
            ("prompts/b.md".to_owned(), "b".to_owned()),
            ("partials/p.md".to_owned(), format!("p {}", i % 3)),
            (
                "labels.toml".to_owned(),
                format!("[production]\na = \"v{}\"\n", i / 3 + 1),
            ),
        ]
        .into();
        out.push(Made {
            files,
            merge: i == 4,
        });
    }
    out.push(Made {
        files: [("prompts/a.md".to_owned(), "alone".to_owned())].into(),
        merge: false,
    });
    out
}

struct Kept {
    folder: TempDir,
    made: Histories,
    registry: Arc<Registry>,
    store: Store,
}

impl Kept {
    async fn new() -> Self {
        let made = Histories::new(&commits());
        let library = Library::find(&made.path()).unwrap();
        let registry = Arc::new(Registry::open(library, Settings::default()).unwrap());
        let counting = registry.clone();
        tokio::task::spawn_blocking(move || counting.count().unwrap())
            .await
            .unwrap();
        let folder = TempDir::new().unwrap();
        let store = Store::open(&folder.path().join("cuebook.db"))
            .await
            .unwrap();
        Self {
            folder,
            made,
            registry,
            store,
        }
    }

    fn history(&self) -> Arc<History> {
        self.registry.snapshot().history.clone().unwrap()
    }

    async fn damage(&self, statement: &'static str) {
        let options = sqlx::sqlite::SqliteConnectOptions::new()
            .filename(self.folder.path().join("cuebook.db"));
        let mut connection = sqlx::SqliteConnection::connect_with(&options)
            .await
            .unwrap();
        let done = sqlx::query(statement)
            .execute(&mut connection)
            .await
            .unwrap();
        assert!(done.rows_affected() > 0, "{statement}");
    }

    async fn differing(&self) -> Vec<String> {
        let (_, found) = versions::verify(&self.registry, &self.store).await.unwrap();
        found
            .iter()
            .map(|d| format!("{} {}", d.table, d.row))
            .collect()
    }
}

#[tokio::test]
async fn what_is_written_is_read_again_at_once_or_commit_by_commit() {
    let kept = Kept::new().await;
    assert_eq!(versions::load(&kept.store).await.unwrap(), None);
    let mut before: Option<Arc<History>> = None;
    for at in 0..kept.made.ids.len() {
        let now = kept.made.cold(at).history;
        versions::write(&kept.store, before.as_deref(), &now)
            .await
            .unwrap();
        assert_eq!(
            versions::load(&kept.store).await.unwrap().as_ref(),
            Some(&*now),
            "{at}"
        );
        before = Some(now);
    }
    assert_eq!(kept.differing().await, Vec::<String>::new());
    // somebody who is late: what there is goes, and is never mixed with theirs
    let (third, fourth) = (kept.made.cold(2).history, kept.made.cold(3).history);
    versions::write(&kept.store, Some(&third), &fourth)
        .await
        .unwrap();
    assert_eq!(
        versions::load(&kept.store).await.unwrap().as_ref(),
        Some(&*fourth)
    );
    // main was rewound, and another database
    let earlier = kept.made.cold(2).history;
    versions::write(&kept.store, Some(&fourth), &earlier)
        .await
        .unwrap();
    assert_eq!(
        versions::load(&kept.store).await.unwrap().as_ref(),
        Some(&*earlier)
    );
    let other = Store::open(&kept.folder.path().join("other.db"))
        .await
        .unwrap();
    versions::write(&other, None, &kept.history())
        .await
        .unwrap();
    assert_eq!(
        versions::load(&other).await.unwrap().as_ref(),
        Some(&*kept.history())
    );
}

#[tokio::test]
async fn a_row_that_is_not_what_git_says_is_named_and_made_right() {
    let kept = Kept::new().await;
    let history = kept.history();
    for (statement, named) in [
        (
            "UPDATE version SET content = '0000000000000000000000000000000000000000' WHERE name = 'a' AND number = 2",
            "version a v2",
        ),
        (
            "DELETE FROM version WHERE name = 'a' AND number = 3",
            "version a v3",
        ),
        (
            "INSERT INTO version SELECT name, 99, commit_id, path, content FROM version WHERE name = 'b'",
            "version b v99",
        ),
        (
            "UPDATE version_name SET last = NULL WHERE name = 'a'",
            "version_name a",
        ),
        (
            "UPDATE version_commit SET author = 'somebody else' WHERE subject = 'commit 1'",
            "version_commit ",
        ),
        (
            "DELETE FROM label_change WHERE position = 1",
            "label_change 1",
        ),
    ] {
        versions::write(&kept.store, None, &history).await.unwrap();
        assert_eq!(kept.differing().await, Vec::<String>::new(), "{statement}");
        kept.damage(statement).await;
        let found = kept.differing().await;
        assert_eq!(found.len(), 1, "{statement}: {found:?}");
        assert!(found[0].starts_with(named), "{statement}: {found:?}");
        versions::reindex(&kept.registry, &kept.store)
            .await
            .unwrap();
        assert_eq!(kept.differing().await, Vec::<String>::new(), "{statement}");
        assert_eq!(kept.history(), history, "{statement}");
        assert_eq!(
            versions::load(&kept.store).await.unwrap().as_ref(),
            Some(&*history),
            "{statement}"
        );
    }
}

#[tokio::test]
async fn rows_of_other_rules_and_half_written_rows_are_not_used() {
    let kept = Kept::new().await;
    for statement in [
        "UPDATE version_state SET rule = rule + 1",
        "UPDATE version_state SET tip = ''",
        "UPDATE version_state SET tip = 'no id'",
        "DELETE FROM version WHERE name = 'a' AND number = 1",
        "DELETE FROM version_commit WHERE subject = 'commit 1'",
        "DELETE FROM version_name WHERE name = 'b'",
        "UPDATE version SET content = 'short' WHERE name = 'b'",
    ] {
        versions::write(&kept.store, None, &kept.history())
            .await
            .unwrap();
        assert!(versions::load(&kept.store).await.unwrap().is_some());
        kept.damage(statement).await;
        assert_eq!(
            versions::load(&kept.store).await.unwrap(),
            None,
            "{statement}"
        );
    }
}

#[test]
fn a_file_of_labels_is_read_once_however_many_ask() {
    let made = Histories::new(&commits());
    let repository = made.repository();
    let history = made.cold(made.ids.len() - 1).history;
    let moves = |name: &str| -> Vec<(String, Option<u64>, String)> {
        let moves = versions::log::moves(&repository, &history, name).unwrap();
        moves
            .into_iter()
            .map(|m| (m.label, m.number, m.commit.subject.to_string()))
            .collect()
    };
    let expected = [
        ("production".to_owned(), Some(1), "commit 1".to_owned()),
        ("production".to_owned(), Some(2), "commit 4".to_owned()),
        ("production".to_owned(), None, "commit 7".to_owned()),
    ];
    assert_eq!(moves("a"), expected);
    // of the last commits alone: where the label was, and where it went
    let mut last = Vec::new();
    versions::log::walk(&repository, &history, 2, |_, commit, moved| {
        let moved = moved.iter().map(|moved| (moved.before, moved.number));
        last.push((commit.subject.to_string(), moved.collect::<Vec<_>>()));
    })
    .unwrap();
    let expected_last = [
        ("commit 4".to_owned(), vec![(Some(1), Some(2))]),
        ("commit 7".to_owned(), vec![(Some(2), None)]),
    ];
    assert_eq!(last, expected_last);
    // nothing can be read any more
    let objects = made.path().join("objects");
    std::fs::remove_dir_all(&objects).unwrap();
    std::fs::create_dir(&objects).unwrap();
    assert_eq!(moves("a"), expected);
    assert_eq!(moves("b"), []);
}

#[test]
fn a_start_counts_on_from_what_was_kept_also_where_a_label_is_served() {
    let files = |text: &str| -> Files {
        [
            (
                "cuebook.toml".to_owned(),
                "serve = \"production\"\n".to_owned(),
            ),
            (
                "labels.toml".to_owned(),
                "[production]\na = \"v1\"\n".to_owned(),
            ),
            ("prompts/a.md".to_owned(), text.to_owned()),
        ]
        .into()
    };
    let commits: Vec<Made> = ["one", "two", "three"]
        .into_iter()
        .map(|text| Made {
            files: files(text),
            merge: false,
        })
        .collect();
    let made = Histories::new(&commits);
    let opened = |kept: Option<History>| {
        let library = Library::find(&made.path()).unwrap();
        let registry = Registry::open_from(library, Settings::default(), kept).unwrap();
        let snapshot = registry.snapshot();
        assert_eq!(snapshot.status.tip, snapshot.status.served);
        (
            snapshot.history.clone().unwrap(),
            snapshot.served_version("a").map(|(n, _)| n),
        )
    };
    let cold = made.cold(2).history;
    assert_eq!(opened(None), (cold.clone(), Some(1)));
    for at in 0..3 {
        let kept = (*made.cold(at).history).clone();
        assert_eq!(opened(Some(kept)), (cold.clone(), Some(1)), "{at}");
    }
    // what was kept is what is counted on from: one version more than there was shows
    let before = made.cold(1).history;
    let names = before.names().map(|(name, numbered)| {
        let mut numbered = (**numbered).clone();
        numbered.versions.insert(0, numbered.versions[0].clone());
        (name.clone(), numbered)
    });
    let more = History::kept(before.tip().unwrap(), names, before.labels().cloned());
    assert_eq!(opened(Some(more)).0.latest("a"), Some(4));
    // what another main had is not
    let other = Histories::new(&[Made {
        files: files("another"),
        merge: false,
    }]);
    let other = (*other.cold(0).history).clone();
    assert_eq!(opened(Some(other)), (cold, Some(1)));
}
