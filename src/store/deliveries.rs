//! Rows of deliveries: which text went to whom when, with which resources.

use sqlx::{FromRow, QueryBuilder, Sqlite, Transaction};

use super::{Store, StoreError};

/// Rows that one statement writes; requests go on while it waits for the next.
const TOGETHER: usize = 50;

/// A prompt that was delivered.
#[derive(Debug, Clone, Default, PartialEq, Eq, FromRow)]
pub struct DeliveryRow {
    /// Its number, from 1; given by the store.
    pub seq: i64,
    /// When, in milliseconds since 1970; of several, the first.
    pub at: i64,
    /// How often within that second, at least once.
    pub times: i64,
    /// The actor who got it.
    pub actor: String,
    /// The client, as it calls itself.
    pub client: String,
    /// The client's version.
    pub client_version: String,
    /// `prompt` or `tool`.
    pub via: String,
    /// Whether an argument held a placeholder such as `$1`, so that the client put the values in by itself.
    pub placeholder: bool,
    /// The prompt.
    pub prompt: String,
    /// Its version, where it was known.
    pub version: Option<i64>,
    /// The commit that has its text; none for a work tree.
    pub revision: Option<String>,
    /// Its file in that commit.
    pub path: String,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// The commit that has the resources: another one than that of the text where an earlier version was asked for.
    pub resources_revision: Option<String>,
    /// A JSON list of `{"uri", "path", "sha256"}`: the resources that were delivered with it.
    pub resources: String,
}

macro_rules! find {
    ($($narrowed:literal)*) => {
        concat!(
            "SELECT * FROM delivery WHERE at >= $1 AND (at, seq) < ($2, $3)",
            $($narrowed,)*
            " ORDER BY at DESC, seq DESC LIMIT $4"
        )
    };
}

/// A text for each combination of prompt, actor and client: a text that asks whether it is narrowed uses no index.
const FIND: [&str; 8] = [
    find!(),
    find!(" AND client = $7"),
    find!(" AND actor = $6"),
    find!(" AND actor = $6" " AND client = $7"),
    find!(" AND prompt = $5"),
    find!(" AND prompt = $5" " AND client = $7"),
    find!(" AND prompt = $5" " AND actor = $6"),
    find!(" AND prompt = $5" " AND actor = $6" " AND client = $7"),
];
/// Removes the oldest from before a time.
const FORGET_OLD: &str = "DELETE FROM delivery WHERE seq IN
     (SELECT seq FROM delivery WHERE at < $1 ORDER BY at, seq LIMIT $2)";
/// Removes the oldest up to a number.
const FORGET_MANY: &str = "DELETE FROM delivery WHERE seq IN
     (SELECT seq FROM delivery WHERE seq <= $1 ORDER BY seq LIMIT $2)";

/// Which deliveries are asked for; what is none narrows nothing.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// Not before, in milliseconds since 1970.
    pub from: Option<i64>,
    /// Before, in milliseconds since 1970.
    pub before: Option<i64>,
    /// After the one of this number in the answer before.
    pub before_seq: Option<i64>,
    /// Of this prompt.
    pub prompt: Option<String>,
    /// To this actor.
    pub actor: Option<String>,
    /// To this client.
    pub client: Option<String>,
}

/// The number of the newest delivery; 0 where there is none.
pub(super) async fn last(transaction: &mut Transaction<'_, Sqlite>) -> Result<i64, StoreError> {
    Ok(
        sqlx::query_scalar("SELECT COALESCE(MAX(seq), 0) FROM delivery")
            .fetch_one(&mut **transaction)
            .await?,
    )
}

pub(super) async fn add(
    transaction: &mut Transaction<'_, Sqlite>,
    rows: &[DeliveryRow],
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    // each statement goes to the database's thread and back
    let mut next = last(transaction).await? + 1;
    for some in rows.chunks(TOGETHER) {
        let mut query = QueryBuilder::<Sqlite>::new(
            "INSERT INTO delivery (seq, at, times, actor, client, client_version, via, placeholder, prompt, version, revision, path, sha256, resources_revision, resources) ",
        );
        query.push_values(some, |mut values, row| {
            values
                .push_bind(next)
                .push_bind(row.at)
                .push_bind(row.times.max(1))
                .push_bind(&row.actor)
                .push_bind(&row.client)
                .push_bind(&row.client_version)
                .push_bind(&row.via)
                .push_bind(i64::from(row.placeholder))
                .push_bind(&row.prompt)
                .push_bind(row.version)
                .push_bind(&row.revision)
                .push_bind(&row.path)
                .push_bind(&row.sha256)
                .push_bind(&row.resources_revision)
                .push_bind(&row.resources);
            next += 1;
        });
        let full = some.len() == TOGETHER;
        let query = query.build().persistent(full);
        query.execute(&mut **transaction).await?;
    }
    Ok(())
}

impl Store {
    /// Deliveries, newest first and at most so many.
    pub async fn deliveries(
        &self,
        filter: &DeliveryFilter,
        most: i64,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        let before = filter.before.unwrap_or(i64::MAX);
        let mut end = (before, i64::MIN);
        if let Some(seq) = filter.before_seq {
            let at: Option<i64> = sqlx::query_scalar("SELECT at FROM delivery WHERE seq = $1")
                .bind(seq)
                .fetch_optional(&self.read)
                .await?;
            match at {
                Some(at) => end = end.min((at, seq)),
                // the oldest are removed first
                None => return Ok(Vec::new()),
            }
        }
        let narrowed = [&filter.prompt, &filter.actor, &filter.client];
        let [prompt, actor, client] = narrowed.map(|of| usize::from(of.is_some()));
        let mut query = sqlx::query_as(FIND[prompt * 4 + actor * 2 + client])
            .bind(filter.from.unwrap_or(i64::MIN))
            .bind(end.0)
            .bind(end.1)
            .bind(most);
        for of in narrowed {
            // each has its number in every text
            query = query.bind(of);
        }
        Ok(query.fetch_all(&self.read).await?)
    }

    /// Removes at most so many of the oldest deliveries that are from before a time (milliseconds since 1970), or more than
    /// `keep` behind the newest. Returns how many it removed.
    pub async fn forget_deliveries(
        &self,
        before: i64,
        keep: i64,
        most: i64,
    ) -> Result<u64, StoreError> {
        let mut transaction = self.write.begin_with("BEGIN IMMEDIATE").await?;
        let behind = last(&mut transaction).await?.saturating_sub(keep);
        let mut removed = 0;
        for (sql, bound) in [(FORGET_OLD, before), (FORGET_MANY, behind)] {
            let left = most.saturating_sub(i64::try_from(removed).unwrap_or(i64::MAX));
            removed += sqlx::query(sql)
                .bind(bound)
                .bind(left)
                .execute(&mut *transaction)
                .await?
                .rows_affected();
        }
        transaction.commit().await?;
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn deliveries_are_found_and_removed_by_index() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("cuebook.db"))
            .await
            .unwrap();
        for sql in FIND.into_iter().chain([FORGET_OLD, FORGET_MANY]) {
            let explain = format!("EXPLAIN QUERY PLAN {sql}");
            let plan: Vec<(i64, i64, i64, String)> = sqlx::query_as(sqlx::AssertSqlSafe(explain))
                .fetch_all(&store.read)
                .await
                .unwrap();
            let plan: Vec<&str> = plan.iter().map(|step| &*step.3).collect();
            let scans = |step: &&&str| step.starts_with("SCAN") || step.contains("TEMP B-TREE");
            assert_eq!(plan.iter().find(scans), None, "{sql}: {plan:?}");
            assert!(plan[0].contains("INDEX"), "{sql}: {plan:?}");
        }
    }

    #[tokio::test]
    async fn pages_follow_each_other_whatever_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("cuebook.db"))
            .await
            .unwrap();
        let rows = (0..40).map(|n| DeliveryRow {
            // three in a millisecond
            at: 1000 + n / 3,
            prompt: if n % 2 == 0 { "even" } else { "odd" }.into(),
            client: format!("client {}", n % 5),
            actor: "local".into(),
            resources: "[]".into(),
            ..DeliveryRow::default()
        });
        let batch = super::super::Batch {
            deliveries: rows.collect(),
            ..Default::default()
        };
        store.write_records(&batch).await.unwrap();
        for prompt in [None, Some("even")] {
            for client in [None, Some("client 2")] {
                for actor in [None, Some("local")] {
                    let mut filter = DeliveryFilter {
                        from: Some(1002),
                        before: Some(1010),
                        prompt: prompt.map(str::to_owned),
                        client: client.map(str::to_owned),
                        actor: actor.map(str::to_owned),
                        ..DeliveryFilter::default()
                    };
                    let mut found = Vec::new();
                    loop {
                        let page = store.deliveries(&filter, 4).await.unwrap();
                        found.extend(page.iter().map(|row| row.seq));
                        let Some(last) = page.last() else { break };
                        filter.before_seq = Some(last.seq);
                    }
                    let expected: Vec<i64> = (0..40)
                        .filter(|n| (1002..1010).contains(&(1000 + n / 3)))
                        .filter(|n| prompt.is_none() || n % 2 == 0)
                        .filter(|n| client.is_none() || n % 5 == 2)
                        .map(|n| n + 1)
                        .rev()
                        .collect();
                    assert_eq!(found, expected);
                }
            }
        }
    }
}
