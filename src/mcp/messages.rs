//! From rendered messages to what goes on the wire, for one revision and one client.

use std::borrow::Cow;

use super::clients::{Inline, Needs, Reads};
use super::neutralise::neutralise;
use super::revision::Revision;
use super::wire::{Base64, Block, Contents, Message};
use crate::prompt::{self, Content, Embed, Resource, Role};

/// What decides the shape of messages.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// The revision in use.
    pub revision: Revision,
    /// What the client cannot read.
    pub needs: Needs,
    /// Whether embedded resources are put into text.
    pub inline: Inline,
    /// Whether what a client would execute is made inert.
    pub neutralise: bool,
}

/// Shapes messages; says what was done beyond the protocol's own form.
pub fn shape<'a>(
    rendered: &'a [prompt::Message],
    values: &[&str],
    shape: Shape,
) -> (Vec<Message<'a>>, Vec<&'static str>) {
    let mut transforms = Vec::new();
    let mut messages = Vec::with_capacity(rendered.len());
    let mut system: Vec<&str> = Vec::new();
    for message in rendered {
        let role = match message.role {
            Role::Assistant => "assistant",
            Role::User | Role::System => "user",
        };
        let content = match &message.content {
            Content::Text(text) if message.role == Role::System => {
                system.push(text);
                continue;
            }
            Content::Text(text) => Block::Text {
                text: Cow::Borrowed(text),
            },
            Content::Resource {
                resource, embed, ..
            } => block(resource, *embed, shape, &mut transforms),
        };
        messages.push(Message { role, content });
    }
    if !system.is_empty() {
        put_in_front(&mut messages, &system);
    }
    if shape.needs.reads == Reads::FirstText && shape.inline != Inline::Never && messages.len() > 1
    {
        note(&mut transforms, "flattened");
        messages = vec![Message {
            role: "user",
            content: Block::Text {
                text: flat(&messages).into(),
            },
        }];
    }
    if shape.neutralise && shape.needs.neutralise {
        for message in &mut messages {
            if let Block::Text { text } = &mut message.content
                && let Some(inert) = neutralise(text, values.iter().copied())
            {
                *text = Cow::Owned(inert);
                note(&mut transforms, "neutralised");
            }
        }
    }
    (messages, transforms)
}

fn note(transforms: &mut Vec<&'static str>, what: &'static str) {
    if !transforms.contains(&what) {
        transforms.push(what);
    }
}

/// MCP knows no system role: such text stands in front of the first user text.
fn put_in_front<'a>(messages: &mut Vec<Message<'a>>, system: &[&'a str]) {
    let front: Vec<&str> = system
        .iter()
        .map(|text| text.trim_end_matches('\n'))
        .collect();
    let front = front.join("\n\n");
    let first = messages
        .iter_mut()
        .find_map(|message| match &mut message.content {
            Block::Text { text } if message.role == "user" => Some(text),
            _ => None,
        });
    match first {
        Some(text) => *text = Cow::Owned(format!("{front}\n\n{text}")),
        None => messages.insert(
            0,
            Message {
                role: "user",
                content: Block::Text {
                    text: Cow::Owned(front),
                },
            },
        ),
    }
}

fn block<'a>(
    resource: &'a Resource,
    embed: Embed,
    shape: Shape,
    transforms: &mut Vec<&'static str>,
) -> Block<'a> {
    let inline = match shape.inline {
        Inline::Always => true,
        Inline::Never => false,
        Inline::Auto => shape.needs.reads >= Reads::Text,
    };
    let name_links = shape.needs.reads >= Reads::NoLinks && shape.inline != Inline::Never;
    match embed {
        Embed::Text => match resource.text() {
            Some(text) => Block::Text {
                text: Cow::Borrowed(text),
            },
            None => embedded(resource),
        },
        _ if inline => {
            note(transforms, "inlined");
            Block::Text {
                text: inlined(resource, embed).into(),
            }
        }
        Embed::Resource => embedded(resource),
        Embed::Link if name_links || !shape.revision.has_resource_link() => {
            note(transforms, "links-named");
            Block::Text {
                text: named(resource).into(),
            }
        }
        Embed::Link => Block::ResourceLink {
            uri: &resource.uri,
            name: &resource.name,
            mime_type: &resource.mime_type,
            size: resource.bytes().len(),
        },
        Embed::Image => Block::Image {
            data: Base64(resource.bytes()),
            mime_type: &resource.mime_type,
        },
        Embed::Audio if name_links => {
            note(transforms, "links-named");
            Block::Text {
                text: named(resource).into(),
            }
        }
        Embed::Audio if !shape.revision.has_audio() => embedded(resource),
        Embed::Audio => Block::Audio {
            data: Base64(resource.bytes()),
            mime_type: &resource.mime_type,
        },
    }
}

fn embedded(resource: &Resource) -> Block<'_> {
    Block::Resource {
        resource: Contents::new(&resource.uri, resource),
    }
}

fn named(resource: &Resource) -> String {
    format!(
        "Resource {} ({}, {} bytes)",
        resource.uri,
        resource.mime_type,
        resource.bytes().len()
    )
}

fn inlined(resource: &Resource, embed: Embed) -> String {
    match (resource.text(), embed) {
        (Some(text), Embed::Resource) => format!("Resource {}:\n\n{text}", resource.uri),
        _ => named(resource),
    }
}

/// The whole prompt as one text, for a reader of one message.
pub fn flat(messages: &[Message<'_>]) -> String {
    let mut out = String::new();
    for message in messages {
        if !out.is_empty() {
            out.truncate(out.trim_end_matches('\n').len());
            out.push_str("\n\n");
        }
        if message.role == "assistant" {
            out.push_str("Assistant: ");
        }
        out.push_str(&flat_one(message));
    }
    out
}

/// One message as text.
pub fn flat_one<'a>(message: &'a Message<'_>) -> Cow<'a, str> {
    match &message.content {
        Block::Text { text } => Cow::Borrowed(text),
        Block::Resource {
            resource:
                Contents {
                    uri,
                    text: Some(text),
                    ..
                },
        } => Cow::Owned(format!("Resource {uri}:\n\n{text}")),
        Block::Resource {
            resource: Contents { uri, mime_type, .. },
        }
        | Block::ResourceLink { uri, mime_type, .. } => {
            Cow::Owned(format!("Resource {uri} ({mime_type})"))
        }
        Block::Image { mime_type, .. } | Block::Audio { mime_type, .. } => {
            Cow::Owned(format!("({mime_type}, not shown)"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::clients::Client;
    use super::*;
    use crate::prompt::ResourceBody;

    fn text(role: Role, text: &str) -> prompt::Message {
        prompt::Message {
            role,
            content: Content::Text(text.into()),
        }
    }

    fn resource(embed: Embed, body: ResourceBody, mime: &str) -> prompt::Message {
        let resource = Resource {
            uri: "runbook://pay".into(),
            long_uri: "runbook://pay.md".into(),
            path: "resources/runbook/pay.md".into(),
            name: "pay".into(),
            mime_type: mime.into(),
            body,
            sha256: "00".into(),
        };
        prompt::Message {
            role: Role::User,
            content: Content::Resource {
                binding: "runbook".into(),
                resource: Arc::new(resource),
                embed,
            },
        }
    }

    fn json(
        rendered: &[prompt::Message],
        client: &str,
        revision: Revision,
        inline: Inline,
    ) -> String {
        let needs = Client::new(client, "1").needs();
        let (messages, transforms) = shape(
            rendered,
            &[],
            Shape {
                revision,
                needs,
                inline,
                neutralise: true,
            },
        );
        format!(
            "{} {transforms:?}",
            serde_json::to_string(&messages).unwrap()
        )
    }

    #[test]
    fn the_protocols_own_form() {
        let rendered = [
            text(Role::User, "do"),
            resource(
                Embed::Resource,
                ResourceBody::Text("# Pay".into()),
                "text/markdown",
            ),
            resource(
                Embed::Image,
                ResourceBody::Blob(Arc::new([1, 2, 3])),
                "image/png",
            ),
            resource(
                Embed::Link,
                ResourceBody::Text("# Pay".into()),
                "text/markdown",
            ),
            resource(Embed::Audio, ResourceBody::Blob(Arc::new([1])), "audio/wav"),
            text(Role::Assistant, "will"),
        ];
        assert_eq!(
            json(&rendered, "x", Revision::V2025_11_25, Inline::Auto),
            r##"[{"role":"user","content":{"type":"text","text":"do"}},{"role":"user","content":{"type":"resource","resource":{"uri":"runbook://pay","mimeType":"text/markdown","text":"# Pay"}}},{"role":"user","content":{"type":"image","data":"AQID","mimeType":"image/png"}},{"role":"user","content":{"type":"resource_link","uri":"runbook://pay","name":"pay","mimeType":"text/markdown","size":5}},{"role":"user","content":{"type":"audio","data":"AQ==","mimeType":"audio/wav"}},{"role":"assistant","content":{"type":"text","text":"will"}}] []"##
        );
        let oldest = json(&rendered, "x", Revision::V2024_11_05, Inline::Auto);
        assert!(
            !oldest.contains("resource_link") && !oldest.contains("\"audio\""),
            "{oldest}"
        );
        assert!(
            oldest.contains(r#""blob":"AQ==""#)
                && oldest.contains("Resource runbook://pay (text/markdown, 5 bytes)")
        );
    }

    #[test]
    fn system_text_stands_in_front_of_the_first_user_text() {
        let rendered = [
            text(Role::Assistant, "a"),
            text(Role::System, "s1"),
            text(Role::User, "u"),
            text(Role::System, "s2"),
        ];
        assert_eq!(
            json(&rendered, "x", Revision::V2026_07_28, Inline::Auto),
            r#"[{"role":"assistant","content":{"type":"text","text":"a"}},{"role":"user","content":{"type":"text","text":"s1\n\ns2\n\nu"}}] []"#
        );
        assert_eq!(
            json(
                &[text(Role::System, "s")],
                "x",
                Revision::V2026_07_28,
                Inline::Auto
            ),
            r#"[{"role":"user","content":{"type":"text","text":"s"}}] []"#
        );
    }

    #[test]
    fn p6_one_flat_text_for_a_reader_of_one_message() {
        let rendered = [
            resource(
                Embed::Resource,
                ResourceBody::Text("# Pay".into()),
                "text/markdown",
            ),
            text(Role::User, "do"),
            text(Role::Assistant, "will"),
        ];
        assert_eq!(
            json(
                &rendered,
                "gemini-cli-mcp-client",
                Revision::V2025_06_18,
                Inline::Auto
            ),
            r#"[{"role":"user","content":{"type":"text","text":"Resource runbook://pay:\n\n# Pay\n\ndo\n\nAssistant: will"}}] ["inlined", "flattened"]"#
        );
    }

    #[test]
    fn the_setting_wins_over_the_table() {
        let rendered = [resource(
            Embed::Resource,
            ResourceBody::Text("# Pay".into()),
            "text/markdown",
        )];
        let inlined = |client, inline| {
            json(&rendered, client, Revision::V2025_06_18, inline).contains("inlined")
        };
        assert!(inlined("zed", Inline::Auto) && inlined("x", Inline::Always));
        assert!(!inlined("x", Inline::Auto) && !inlined("zed", Inline::Never));
    }
}
