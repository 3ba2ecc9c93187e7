//! What the API says of itself: `OpenAPI` 3.1, made from the handlers and what they read and answer. The router is made from
//! the same, so that no URL is there and not in it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::extract::{MatchedPath, Request};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, OpenApi as Document, Ref, RefOr, Required,
    Response as Documented, ResponseBuilder,
};
use utoipa::{IntoParams, IntoResponses, Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::query::only;
use super::{Api, Details, Refusal};

/// What every answer that says no is made of.
const PROBLEM: &str = "application/problem+json";
/// Longest answer of a layer that is read to say it as a problem, in bytes.
const MAX_LINE: usize = 16 * 1024;

/// What is said of the whole.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cuebook",
        description = "A team's prompt registry. Every error is a problem (RFC 9457): `detail` is one line that a person \
                       can act on. Lists come in pages: `limit` says how many entries, `next_cursor` what to send as \
                       `cursor` to get the next ones. What has an `ETag` is written with `If-Match`, so that nobody \
                       writes over what they have not seen."
    ),
    servers((url = "/")),
    security(("token" = []), ("session" = [])),
    components(schemas(Details)),
    modifiers(&Credentials)
)]
struct Described;

/// The ways to say who asks.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut Document) {
        let Some(components) = &mut document.components else {
            return;
        };
        let token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A token that cuebook token create or the settings page makes, or an access token of the OpenID provider",
            ));
        components.add_security_scheme("token", SecurityScheme::Http(token.build()));
        let session = ApiKeyValue::with_description(
            "cuebook_session",
            "The cookie of who has signed in; __Host-cuebook_session over HTTPS. What writes also sends the header X-Cuebook.",
        );
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(session)));
    }
}

/// Every URL of the API with what is said of it.
pub(super) fn router() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Described::openapi())
        .merge(super::preview::routes())
        .merge(super::changes::routes())
        .merge(super::proposals::routes())
        .merge(super::prompts::routes())
        .merge(super::search::routes())
        .merge(super::verify::routes())
        .merge(super::usage::routes())
        .merge(super::deliveries::routes())
        .merge(super::access::routes())
        .merge(super::activity::routes())
        .merge(super::audit::routes())
        .merge(super::versions::routes())
        .routes(routes!(description))
}

static DOCUMENT: LazyLock<Document> = LazyLock::new(|| router().into_openapi());

/// The same as it is sent.
static TEXT: LazyLock<String> =
    LazyLock::new(|| serde_json::to_string(&*DOCUMENT).unwrap_or_default());

/// The description of the API.
pub fn document() -> &'static Document {
    &DOCUMENT
}

/// This description
#[utoipa::path(
    get,
    path = "/api/v1/openapi.json",
    operation_id = "describe",
    tag = "description",
    responses((status = 200, description = "The description", body = serde_json::Value), Anywhere),
    security(())
)]
async fn description() -> Response {
    let kind = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, kind)], TEXT.as_str()).into_response()
}

/// An answer that says no, by its status.
fn problem(status: StatusCode, why: &str) -> (String, RefOr<Documented>) {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Problem")))
        .build();
    let mut response = ResponseBuilder::new()
        .description(why)
        .content(PROBLEM, content);
    if matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::CONFLICT
    ) {
        let seconds = HeaderBuilder::new()
            .schema(Some(ObjectBuilder::new().schema_type(Type::Integer)))
            .description(Some(
                "Seconds after which another attempt makes sense, where that is known",
            ));
        response = response.header("Retry-After", seconds.build());
    }
    (status.as_str().to_owned(), response.into())
}

/// Kinds of answers that say no, which operations name.
macro_rules! refusals {
    ($($(#[$said:meta])* $name:ident { $($status:ident: $why:literal,)+ })+) => {$(
        $(#[$said])*
        pub(super) enum $name {}

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Documented>> {
                BTreeMap::from([$(problem(StatusCode::$status, $why)),+])
            }
        }
    )+};
}

refusals! {
    /// What each operation may answer.
    Anywhere {
        BAD_REQUEST: "It cannot be read: the host, the body or a parameter, which also may be one that this operation does not have.",
        UNAUTHORIZED: "It takes a credential, or the one that was sent is not good.",
        FORBIDDEN: "Who asks may not do it.",
        TOO_MANY_REQUESTS: "Too much was asked by one client or one actor.",
        SERVICE_UNAVAILABLE: "It cannot be answered now; nothing was done.",
    }
    /// What an operation may answer that reads a body.
    Unread {
        REQUEST_TIMEOUT: "The body did not come in time.",
        PAYLOAD_TOO_LARGE: "The body is longer than is read.",
        UNSUPPORTED_MEDIA_TYPE: "The body is not `application/json`.",
    }
    /// It is not there, or who asks may not see it.
    Absent {
        NOT_FOUND: "There is no such thing, or who asks may not see it.",
    }
    /// What is there stands against it.
    Conflict {
        CONFLICT: "What is there stands against it; `detail` says what. So does a work tree that is served without a database.",
    }
    /// What was seen is not so any more.
    Changed {
        PRECONDITION_FAILED: "It has changed since the `ETag` of `If-Match`; `tag` is the one that it has now.",
    }
    /// It can be read and not be done as it is.
    Unfit {
        UNPROCESSABLE_ENTITY: "It can be read, and cannot be done as it is.",
    }
    /// Our fault.
    Failed {
        INTERNAL_SERVER_ERROR: "A fault of the server, whose log says more.",
    }
    /// The repository that is followed did not answer.
    Unreached {
        BAD_GATEWAY: "The repository that the library follows did not answer or refused.",
    }
}

fn parameter(
    name: &str,
    at: ParameterIn,
    said: &str,
    of: Type,
    example: Option<serde_json::Value>,
) -> Parameter {
    let required = match at {
        ParameterIn::Path => Required::True,
        _ => Required::False,
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(at)
        .required(required)
        .description(Some(said))
        .schema(Some(ObjectBuilder::new().schema_type(of)))
        .example(example)
        .build()
}

macro_rules! example {
    () => {
        None
    };
    ($example:literal) => {
        Some(serde_json::json!($example))
    };
}

/// Kinds of parameters, which operations name.
macro_rules! parameters {
    ($($(#[$said:meta])* $name:ident { $($at:ident $key:literal $of:ident $($example:literal)?: $why:literal,)+ })+) => {$(
        $(#[$said])*
        pub(super) enum $name {}

        impl IntoParams for $name {
            fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
                vec![$(
                    parameter($key, ParameterIn::$at, $why, Type::$of, example!($($example)?))
                ),+]
            }
        }
    )+};
}

parameters! {
    /// The page of a list.
    Paged {
        Query "limit" Integer: "How many entries at most.",
        Query "cursor" String: "The `next_cursor` of the answer before.",
    }
    /// The `ETag` that was seen.
    Seen {
        Header "If-Match" String: "The `ETag` that was seen: where it is another now, nothing is changed.",
    }
    /// A prompt.
    Named {
        Path "name" String "incident-triage": "The name of the prompt.",
    }
    /// A person or a service.
    Somebody {
        Path "name" String: "The name in records.",
    }
    /// Whose rows.
    Whose {
        Query "of" String: "Only of this person or service.",
    }
    /// A proposal.
    Numbered {
        Path "number" Integer 1: "The number of the proposal.",
    }
}

/// What is said of an operation.
fn operation(method: &Method, path: &str) -> Option<&'static Operation> {
    let item = document().paths.paths.get(path)?;
    match *method {
        Method::GET | Method::HEAD => item.get.as_ref(),
        Method::POST => item.post.as_ref(),
        Method::PUT => item.put.as_ref(),
        Method::PATCH => item.patch.as_ref(),
        Method::DELETE => item.delete.as_ref(),
        _ => None,
    }
}

/// Refuses a request with a parameter that is not in the description of what it asks for.
fn known(request: &Request) -> Result<(), Refusal> {
    let path = request.extensions().get::<MatchedPath>();
    let operation = path.and_then(|path| operation(request.method(), path.as_str()));
    // who sends none, as most, is asked nothing
    let (Some(operation), Some(_)) = (operation, request.uri().query()) else {
        return Ok(());
    };
    let known: Vec<&str> = operation
        .parameters
        .iter()
        .flatten()
        .filter_map(|parameter| match parameter {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        })
        .filter(|parameter| parameter.parameter_in == ParameterIn::Query)
        .map(|parameter| parameter.name.as_str())
        .collect();
    only(request.uri(), &known)
}

/// The layer of every operation: what is not described is not taken.
pub(super) async fn described(request: Request, next: Next) -> Response {
    match known(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn is_problem(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == PROBLEM)
}

/// Makes problems of what a layer or a router refuses below `/api/`, which know nothing of the API.
pub async fn problems(request: Request, next: impl AsyncFnOnce(Request) -> Response) -> Response {
    let ours = request.uri().path().starts_with("/api/");
    let response = next(request).await;
    let status = response.status();
    let refused = status.is_client_error() || status.is_server_error();
    if !ours || !refused || is_problem(response.headers()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, MAX_LINE)
        .await
        .unwrap_or_default();
    let said = serde_json::from_slice::<serde_json::Value>(&bytes)
        .ok()
        .and_then(|said| said["error"].as_str().map(str::to_owned))
        .unwrap_or_else(|| String::from_utf8_lossy(&bytes).trim().to_owned());
    let detail = match status {
        StatusCode::METHOD_NOT_ALLOWED => {
            "this URL takes other methods: see the header Allow".to_owned()
        }
        _ if said.is_empty() => status.canonical_reason().unwrap_or("refused").to_owned(),
        _ => said,
    };
    let mut problem = Refusal::new(status, detail).into_response();
    for (name, value) in &parts.headers {
        if name != header::CONTENT_TYPE && name != header::CONTENT_LENGTH {
            problem.headers_mut().append(name.clone(), value.clone());
        }
    }
    problem
}
