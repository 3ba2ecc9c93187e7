-- What was used, delivered and done. Times are milliseconds since 1970, UTC; days count from 1970-01-01, UTC. No row holds an
-- argument's value or rendered text, but recent_value, which holds values and nothing else.

-- Use, one row a prompt, version, client and day. Version 0 is an unknown one: a key cannot hold NULL.
CREATE TABLE usage_day (
    prompt TEXT NOT NULL,
    version BIGINT NOT NULL,
    client TEXT NOT NULL,
    client_version TEXT NOT NULL,
    day BIGINT NOT NULL,
    gets BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    picks BIGINT NOT NULL,
    micros_sum BIGINT NOT NULL,
    micros_max BIGINT NOT NULL,
    PRIMARY KEY (day, prompt, version, client, client_version)
);

-- Times of gets: bucket n holds those below 2^n × 100 microseconds and not below those of the bucket before.
CREATE TABLE usage_latency (
    prompt TEXT NOT NULL,
    version BIGINT NOT NULL,
    day BIGINT NOT NULL,
    bucket BIGINT NOT NULL,
    gets BIGINT NOT NULL,
    PRIMARY KEY (day, prompt, version, bucket)
);

-- What could not be recorded.
CREATE TABLE record_loss (
    day BIGINT NOT NULL,
    kind TEXT NOT NULL,
    lost BIGINT NOT NULL,
    PRIMARY KEY (day, kind)
);

-- A row for each prompt that was delivered: `revision` and `path` lead to its text, `resources_revision` to what came with it,
-- which for an earlier version is not the same commit.
CREATE TABLE delivery (
    seq BIGINT PRIMARY KEY NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    client TEXT NOT NULL,
    client_version TEXT NOT NULL,
    via TEXT NOT NULL,
    placeholder BIGINT NOT NULL,
    prompt TEXT NOT NULL,
    version BIGINT,
    revision TEXT,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    resources_revision TEXT,
    resources TEXT NOT NULL
);
CREATE INDEX delivery_at ON delivery (at, seq);
CREATE INDEX delivery_prompt ON delivery (prompt, at, seq);
CREATE INDEX delivery_actor ON delivery (actor, at, seq);
CREATE INDEX delivery_client ON delivery (client, at, seq);

-- Who did what; each row's hash covers the row and the hash before it.
CREATE TABLE audit (
    seq BIGINT PRIMARY KEY NOT NULL,
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT,
    action TEXT NOT NULL,
    subject TEXT,
    old_commit TEXT,
    new_commit TEXT,
    detail TEXT,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
);

-- The newest row of the chain, and where main was when it was written; one row, id 1.
CREATE TABLE audit_head (
    id BIGINT PRIMARY KEY NOT NULL CHECK (id = 1),
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    main TEXT
);

-- Values of arguments that offer what colleagues used. `weight` is what it was at `at`; it halves with time.
CREATE TABLE recent_value (
    prompt TEXT NOT NULL,
    argument TEXT NOT NULL,
    value TEXT NOT NULL,
    weight DOUBLE PRECISION NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (prompt, argument, value)
);
