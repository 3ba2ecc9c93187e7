//! What a render gives: messages.

use std::sync::Arc;

use super::resource::Resource;

/// Who a message speaks as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Role {
    /// The person (the default before the first marker).
    #[default]
    User,
    /// The model.
    Assistant,
    /// Instructions; MCP has no such role, so an adapter moves them in front of the first user text.
    System,
}

impl Role {
    /// The word used in markers, JSON and MCP.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
        }
    }

    /// The role a marker names.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "user" => Some(Self::User),
            "assistant" => Some(Self::Assistant),
            "system" => Some(Self::System),
            _ => None,
        }
    }
}

/// How a bound resource reaches the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Embed {
    /// An embedded `resource` block (text or blob).
    #[default]
    Resource,
    /// Its text, as a text message.
    Text,
    /// A `resource_link` block: where it is, without its content.
    Link,
    /// An `image` block.
    Image,
    /// An `audio` block.
    Audio,
}

impl Embed {
    /// The word used in front matter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resource => "resource",
            Self::Text => "text",
            Self::Link => "link",
            Self::Image => "image",
            Self::Audio => "audio",
        }
    }
}

/// One block of content.
#[derive(Debug, Clone)]
pub enum Content {
    /// Rendered text, served byte for byte.
    Text(String),
    /// A bound resource at its marker.
    Resource {
        /// The name of the binding.
        binding: Arc<str>,
        /// The resource, from the same revision as the prompt.
        resource: Arc<Resource>,
        /// How it is to be shown; [`Embed::Text`] never occurs here with a blob.
        embed: Embed,
    },
}

/// Role and content.
#[derive(Debug, Clone)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Content,
}
