//! `GET /api/v1/prompts/{name}/blame`: which version each line of a prompt is from.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{Extensions, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Known, ShownCommit, blocking, internal, known, number};
use crate::access::Action;
use crate::api::openapi::{Absent, Anywhere, Failed, Named, Unfit};
use crate::api::preview::at_refusal;
use crate::api::query::Query;
use crate::api::{Api, Refusal, by, json};
use crate::git::{GitError, read_again};
use crate::registry::AtError;
use crate::versions::blame;

/// The lines of a version.
#[derive(Serialize, ToSchema)]
#[schema(as = Blame)]
struct Blamed {
    /// The prompt.
    name: String,
    /// The version whose lines these are.
    version: u64,
    /// Its lines.
    lines: Vec<Line>,
    /// Those that lines are from, newest first.
    versions: Vec<Origin>,
}

/// A line.
#[derive(Serialize, ToSchema)]
#[schema(as = BlameLine)]
struct Line {
    /// What it says, without what ends it.
    text: String,
    /// The version it came with; none where that is older than the versions that were compared.
    version: Option<u64>,
}

/// A version that lines are from.
#[derive(Serialize, ToSchema)]
#[schema(as = BlameVersion)]
struct Origin {
    /// Its number.
    version: u64,
    /// Where the prompt was then.
    #[schema(value_type = String)]
    path: Arc<str>,
    #[serde(flatten)]
    of: ShownCommit,
}

/// Which version each line is from
#[utoipa::path(
    get,
    path = "/api/v1/prompts/{name}/blame",
    operation_id = "blame",
    tag = "versions",
    params(
        Named,
        ("at" = Option<String>, Query, description = "The version whose lines are asked for, such as `v3`, or a label; the newest where it is left out", example = "v1")
    ),
    responses(
        (status = 200, description = "Its lines, and where each is from", body = Blamed),
        Anywhere,
        Absent,
        Unfit,
        Failed
    )
)]
pub(super) async fn blame(
    State(api): State<Api>,
    Path(name): Path<String>,
    uri: Uri,
    extensions: Extensions,
) -> Response {
    let answer = async {
        let known = known(&api, by(&extensions).actor, &name)?;
        let asked = Query::of(&uri)?;
        let at = match asked.text("at") {
            Some(text) => number(&known, text)?,
            None => known.numbered.latest(),
        };
        let _place = api
            .registry
            .blaming()
            .await
            .map_err(|error| at_refusal(&error))?;
        let registry = api.registry.clone();
        let Known {
            actor,
            name,
            numbered,
            ..
        } = known;
        let (of, sees) = (numbered.clone(), move |path: &str| {
            actor.may(Action::Read, path)
        });
        let found = blocking(move || {
            let Some(repository) = registry.library().repository() else {
                return Err(at_refusal(&AtError::NotNumbered));
            };
            read_again(GitError::git, || blame::blame(repository, &of, at, &sees))
                .map_err(|error| internal(&error))
        })
        .await?;
        let numbers: BTreeSet<u64> = found.from.iter().copied().flatten().collect();
        let versions = numbers.into_iter().rev();
        Ok(json(&Blamed {
            name,
            version: found.version,
            lines: found
                .lines
                .into_iter()
                .zip(found.from)
                .map(|(text, version)| Line { text, version })
                .collect(),
            versions: versions
                .filter_map(|version| {
                    let found = numbered.get(version)?;
                    Some(Origin {
                        version,
                        path: found.path.clone(),
                        of: ShownCommit::from(&*found.commit),
                    })
                })
                .collect(),
        }))
    };
    answer.await.unwrap_or_else(Refusal::into_response)
}
