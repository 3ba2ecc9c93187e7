-- Changes under review. Times are milliseconds since 1970, UTC; ids of commits are 40 hex digits.
CREATE TABLE proposal (
    number BIGINT PRIMARY KEY NOT NULL,
    target TEXT NOT NULL,
    topic TEXT,
    title TEXT NOT NULL,
    author TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'merged', 'closed')),
    head TEXT NOT NULL,
    revision BIGINT NOT NULL CHECK (revision >= 1),
    opened_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL
);

-- A topic names one open proposal.
CREATE UNIQUE INDEX proposal_open_topic ON proposal (target, topic) WHERE state = 'open' AND topic IS NOT NULL;

-- What was pushed to a proposal, one row a push.
CREATE TABLE proposal_revision (
    proposal BIGINT NOT NULL REFERENCES proposal (number),
    revision BIGINT NOT NULL,
    head TEXT NOT NULL,
    pushed_by TEXT NOT NULL,
    pushed_at BIGINT NOT NULL,
    PRIMARY KEY (proposal, revision)
);
