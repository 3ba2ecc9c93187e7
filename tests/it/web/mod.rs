//! The pages, over real sockets: what a browser gets, in both languages, whatever authors write.

mod blame;
mod clients;
mod edit;
mod hostile;
mod pages;
mod problems;
mod prompt;
mod review;
mod settings;
mod shown;
mod told;

use crate::support::http::{Reply, send};
use crate::support::server::TestServer;

/// What a browser says that it takes.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Opens a page as a browser does.
async fn open(server: &TestServer, path: &str) -> Reply {
    open_in(server, path, "en").await
}

/// The same in a language.
async fn open_in(server: &TestServer, path: &str, lang: &str) -> Reply {
    let headers = [("Accept", BROWSER), ("Accept-Language", lang)];
    send(server.address, "GET", path, &headers, b"").await
}
