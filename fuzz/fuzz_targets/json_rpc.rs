//! The JSON-RPC entry: whatever bytes come in, every message is read or refused with a code, an id
//! that is echoed is the one that was sent, and what is answered is JSON.
#![no_main]

use cuebook::mcp::envelope::{Incoming, Message, Rejected};
use cuebook::mcp::error::RpcError;
use cuebook::mcp::meta;
use libfuzzer_sys::fuzz_target;

fn refused(error: &RpcError, id: Option<&str>) {
    assert!(matches!(error.code, -32700 | -32600 | -32602 | -32022), "{error:?}");
    assert!(!error.message.contains(char::is_control), "{error:?}");
    for modern in [false, true] {
        let response = error.to_response(id, modern);
        let value: serde_json::Value = serde_json::from_slice(&response).expect("a response is JSON");
        assert_eq!(value["error"]["code"], error.code);
    }
}

fn one(message: Result<Message<'_>, Rejected<'_>>) {
    match message {
        Ok(Message::Request(request)) => {
            let id: serde_json::Value = serde_json::from_str(request.id).expect("an id is JSON");
            assert!(id.is_string() || id.is_number());
            let params = &request.params;
            let _ = meta::declared_version(params);
            for error in [
                meta::read(params).err(),
                params.name().err(),
                params.uri().err(),
                params.cursor().err(),
                params.prompt_arguments().err(),
            ]
            .into_iter()
            .flatten()
            {
                refused(&error, Some(request.id));
            }
        }
        Ok(Message::Notification(_) | Message::Response) => {}
        Err(Rejected { id, error }) => refused(&error, id),
    }
}

fuzz_target!(|data: &[u8]| {
    match Incoming::parse(data) {
        Incoming::One(message) => one(message),
        Incoming::Batch(messages) => messages.into_iter().for_each(one),
    }
});
