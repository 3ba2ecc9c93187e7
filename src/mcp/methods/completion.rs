//! `completion/complete`: advice while someone types, so it never fails over what is not there.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::Answer;
use super::super::envelope::{present, text};
use super::super::error::{Failure, RpcError};
use super::super::params::{object, required_text};
use super::super::wire::Common;
use super::Call;
use super::prompts::in_folder;
use crate::catalog::Completion;

/// The protocol's limit on values in one answer.
const MAX_VALUES: usize = 100;

#[derive(Default, Deserialize)]
struct Reference<'a> {
    #[serde(borrow, default, deserialize_with = "present", rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    uri: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Typed<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    name: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    value: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Context<'a> {
    #[serde(borrow, default)]
    arguments: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
}

pub(super) fn complete(call: &Call<'_>) -> Result<Answer, Failure> {
    let reference: Reference<'_> = object(call.params.reference, "ref")?;
    let typed: Typed<'_> = object(call.params.argument, "argument")?;
    let argument = required_text(typed.name, "argument.name")?;
    let value = required_text(typed.value, "argument.value")?;
    let context = context(call.params.context);
    let catalog = &call.snapshot.catalog;
    let completion = match &*required_text(reference.kind, "ref.type")? {
        "ref/prompt" => {
            let name = required_text(reference.name, "ref.name")?;
            // Values are advice: those of today's version serve for any other.
            let name = name.split('@').next().unwrap_or_default();
            match catalog
                .prompt(name)
                .filter(|prompt| in_folder(prompt, call.folder()))
            {
                Some(prompt) => {
                    let records = call.service.records.as_ref();
                    let recent = records
                        .map(|records| records.recents().get(prompt.name.as_str(), &argument));
                    let recent = recent.as_deref().unwrap_or_default();
                    catalog.complete(prompt, &argument, &value, &context, recent)
                }
                None => Completion::default(),
            }
        }
        "ref/resource" => {
            let uri = required_text(reference.uri, "ref.uri")?;
            catalog.complete_uri(&uri, &argument, &value, &context)
        }
        _ => {
            return Err(RpcError::invalid_params(
                "`ref.type` must be \"ref/prompt\" or \"ref/resource\"",
            )
            .into());
        }
    };
    answer(call, completion)
}

/// What else is filled in; what is not text is left out.
fn context(raw: Option<&RawValue>) -> BTreeMap<String, String> {
    let context: Context<'_> = object(raw, "context").unwrap_or_default();
    let arguments = context.arguments.unwrap_or_default();
    arguments
        .into_iter()
        .take(super::super::params::MAX_ARGUMENTS)
        .filter_map(|(name, value)| Some((name.into_owned(), text(value)?.into_owned())))
        .collect()
}

fn answer(call: &Call<'_>, completion: Completion) -> Result<Answer, Failure> {
    #[derive(Serialize)]
    struct Complete<'a> {
        completion: Values,
        #[serde(flatten)]
        common: Common<'a>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Values {
        #[serde(rename = "values")]
        best: Vec<String>,
        total: usize,
        has_more: bool,
    }
    let Completion {
        values: mut best,
        total,
    } = completion;
    best.truncate(MAX_VALUES);
    let total = total.max(best.len());
    let has_more = total > best.len();
    call.respond(
        &Complete {
            completion: Values {
                best,
                total,
                has_more,
            },
            common: Common::plain(call.caller.revision),
        },
        512,
    )
}
