//! Batches: several messages as one JSON array, which one revision has.

use super::envelope::{Message, Rejected};
use super::error::RpcError;
use super::{Caller, Service, handle};

/// Bytes of all answers to one batch.
const MAX_BATCH_ANSWER: usize = 32 * 1024 * 1024;

/// The answers to a batch as one array; none where nothing in it wants one.
pub(super) async fn answer(
    service: &Service,
    caller: &Caller,
    messages: Vec<Result<Message<'_>, Rejected<'_>>>,
) -> Option<Vec<u8>> {
    let mut out = vec![b'['];
    for message in messages {
        let answer = match message {
            Ok(Message::Notification(_) | Message::Response) => continue,
            Err(Rejected { id, error }) => error.to_response(id, false),
            Ok(Message::Request(request)) if request.method == "initialize" => {
                RpcError::refused(400, "`initialize` cannot be part of a batch")
                    .to_response(Some(request.id), false)
            }
            Ok(Message::Request(request)) if out.len() > MAX_BATCH_ANSWER => RpcError::refused(
                400,
                "the answers to this batch are too long; send fewer messages at once",
            )
            .to_response(Some(request.id), false),
            Ok(Message::Request(request)) => handle(service, caller, &request)
                .await
                .into_bytes(request.id, false),
        };
        if out.len() > 1 {
            out.push(b',');
        }
        out.extend_from_slice(&answer);
    }
    out.push(b']');
    (out.len() > 2).then_some(out)
}
