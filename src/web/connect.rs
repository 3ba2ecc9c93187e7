//! How each client is connected, with this server's own address: what `cuebook connect` prints, to copy.

use axum::extract::State;
use axum::response::Response;
use serde::Serialize;

use super::Web;
use super::page::{Page, show};
use super::text::Lang;
use super::visit::Visit;
use crate::connect::{self, Client, Target, Transport};

/// What the template sees.
#[derive(Debug, Serialize)]
pub struct ConnectPage {
    /// Clients to choose from.
    pub clients: Vec<Choice>,
    /// The one that is shown.
    pub title: &'static str,
    /// As `cuebook connect` calls it.
    pub id: String,
    /// What to do, in groups: the first is the shorter way.
    pub groups: Vec<Group>,
    /// How a prompt is called up there.
    pub using: String,
    /// What it does otherwise.
    pub limits: Vec<String>,
    /// The MCP endpoint.
    pub url: String,
    /// Whether a token goes with it.
    pub needs_token: bool,
}

/// A client to choose.
#[derive(Debug, Serialize)]
pub struct Choice {
    /// As `cuebook connect` calls it.
    pub id: String,
    /// Its name.
    pub title: &'static str,
    /// Whether it is shown.
    pub current: bool,
}

/// The ways of one transport.
#[derive(Debug, Serialize)]
pub struct Group {
    /// `http` or `stdio`.
    pub transport: &'static str,
    /// What to do, one of these.
    pub ways: Vec<Way>,
}

/// One thing to do.
#[derive(Debug, Serialize)]
pub struct Way {
    /// What to do with the block.
    pub what: String,
    /// Where the file is: the system, the path.
    pub places: Vec<(&'static str, String)>,
    /// What to run or to write.
    pub block: String,
}

impl Page for ConnectPage {
    const TEMPLATE: &'static str = "connect.html";
    const SECTION: &'static str = "connect";

    fn title(&self, lang: Lang) -> String {
        lang.text("connect.title", &[])
    }
}

/// `GET /connect`.
pub(super) async fn page(State(web): State<Web>, visit: Visit) -> Response {
    let page = of(
        &web.url,
        visit.query.get("client"),
        visit.actor.credential().is_some(),
        visit.lang,
    );
    show(&web, &visit, &page).await
}

/// The page for a client, or for the first.
pub fn of(url: &str, chosen: Option<&str>, needs_token: bool, lang: Lang) -> ConnectPage {
    let chosen = chosen.and_then(|id| Client::all().iter().find(|client| client.id() == id));
    let chosen = *chosen.unwrap_or(&Client::ClaudeCode);
    let endpoint = format!("{url}/mcp");
    let guide = connect::guide(
        chosen,
        &Target {
            name: "cuebook".to_owned(),
            url: endpoint.clone(),
            library: None,
            // on the reader's machine, wherever it is installed there
            executable: "cuebook".to_owned(),
            transport: Transport::Both,
        },
    );
    let said = |text: &str| match lang {
        Lang::En => text.to_owned(),
        Lang::Ko => connect::korean(text).unwrap_or(text).to_owned(),
    };
    let group = |transport: Transport, name: &'static str| Group {
        transport: name,
        ways: guide
            .ways
            .iter()
            .filter(|way| way.transport == transport)
            .map(|way| Way {
                what: said(&way.what),
                places: way.places.clone(),
                block: way.block.text.trim_end().to_owned(),
            })
            .collect(),
    };
    ConnectPage {
        clients: Client::all()
            .iter()
            .map(|client| Choice {
                id: client.id(),
                title: connect::title(*client),
                current: *client == chosen,
            })
            .collect(),
        title: guide.title,
        id: chosen.id(),
        groups: [
            group(Transport::Http, "http"),
            group(Transport::Stdio, "stdio"),
        ]
        .into_iter()
        .filter(|group| !group.ways.is_empty())
        .collect(),
        using: said(&guide.using),
        limits: guide.limits.iter().map(|limit| said(limit)).collect(),
        url: endpoint,
        needs_token,
    }
}
