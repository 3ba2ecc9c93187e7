-- Edits that are not finished: what somebody was writing at a path, until it is published or given up.
CREATE TABLE draft (
    actor TEXT NOT NULL,
    path TEXT NOT NULL,
    -- the commit of main that the edit was begun from; none in an empty library
    base TEXT,
    text TEXT NOT NULL,
    -- in milliseconds since 1970; another one for each time it is kept
    saved_at BIGINT NOT NULL,
    PRIMARY KEY (actor, path)
);
CREATE INDEX draft_saved_at ON draft (saved_at);
