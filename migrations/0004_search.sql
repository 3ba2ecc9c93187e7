-- What search finds by: derived from the served commit, and made again where it is not what that says.
-- One row a prompt and a resource; `hash` is the SHA-256 of what `search_text` holds of it, hex.
CREATE TABLE search_document (
    id INTEGER PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('prompt', 'resource')),
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (kind, name)
);

-- Texts in the form that is compared, by id of their document. Which of them hold three characters in a row is all that is
-- asked; where they are is looked up in memory.
CREATE VIRTUAL TABLE search_text USING fts5(form, tokenize = 'trigram case_sensitive 1', detail = 'none');

-- Where the two above are at: the rule the forms follow, the revision, and a sum over its documents; no sum while they are
-- being written.
CREATE TABLE search_state (
    id BIGINT PRIMARY KEY NOT NULL CHECK (id = 1),
    rule BIGINT NOT NULL,
    revision TEXT,
    digest TEXT
);
