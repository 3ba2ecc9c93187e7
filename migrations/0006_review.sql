-- What is said of proposals. Times are milliseconds since 1970, UTC; ids of commits are 40 hex digits.

-- `paths` are the files it touches, a JSON list; none until they are looked up. `version` counts what was written of it.
ALTER TABLE proposal ADD COLUMN body TEXT NOT NULL DEFAULT '';
ALTER TABLE proposal ADD COLUMN paths TEXT;
ALTER TABLE proposal ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE proposal ADD COLUMN merge_commit TEXT;
ALTER TABLE proposal ADD COLUMN ended_by TEXT;
ALTER TABLE proposal ADD COLUMN ended_at BIGINT;

-- Verdicts, each on the head that was judged. `groups` are those of the reviewer then, a JSON list.
CREATE TABLE proposal_review (
    proposal BIGINT NOT NULL REFERENCES proposal (number),
    id BIGINT NOT NULL,
    reviewer TEXT NOT NULL,
    groups TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('approve', 'request-changes')),
    head TEXT NOT NULL,
    body TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (proposal, id)
);

-- Comments; the first of a thread has its own id as thread, and the place. A place is a line of a file of a commit, and
-- for one in what a prompt renders to, also the example and the message, counted from 0.
CREATE TABLE proposal_comment (
    proposal BIGINT NOT NULL REFERENCES proposal (number),
    id BIGINT NOT NULL,
    thread BIGINT NOT NULL,
    author TEXT NOT NULL,
    body TEXT NOT NULL,
    at BIGINT NOT NULL,
    edited_at BIGINT,
    head TEXT NOT NULL,
    place_commit TEXT,
    path TEXT,
    side TEXT CHECK (side IN ('old', 'new')),
    line BIGINT,
    example TEXT,
    message BIGINT,
    resolved_by TEXT,
    resolved_at BIGINT,
    PRIMARY KEY (proposal, id)
);
