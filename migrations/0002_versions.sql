-- Versions as git gives them, kept so that a start need not read the whole history. Nothing here is the only copy.
-- Ids of commits and blobs are 40 hex digits; times are seconds since 1970, UTC.

-- Where the rows are at: one row. The tip is empty while they are being written.
CREATE TABLE version_state (
    id BIGINT PRIMARY KEY NOT NULL CHECK (id = 1),
    rule BIGINT NOT NULL,
    tip TEXT NOT NULL
);

-- Commits that made a version or moved a label.
CREATE TABLE version_commit (
    commit_id TEXT PRIMARY KEY NOT NULL,
    seconds BIGINT NOT NULL,
    author TEXT NOT NULL,
    subject TEXT NOT NULL
);

-- Names, and what their next state is compared with; none while the prompt is gone.
CREATE TABLE version_name (
    name TEXT PRIMARY KEY NOT NULL,
    last TEXT
);

-- Versions: the commit, the path there, and a hash over the blobs they are made of.
CREATE TABLE version (
    name TEXT NOT NULL,
    number BIGINT NOT NULL CHECK (number >= 1),
    commit_id TEXT NOT NULL,
    path TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (name, number)
);

-- Commits at which labels.toml changed, in order; no blob where it went away.
CREATE TABLE label_change (
    position BIGINT PRIMARY KEY NOT NULL,
    commit_id TEXT NOT NULL,
    blob TEXT
);
