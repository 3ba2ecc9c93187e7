-- Who may do what. A person or a service; their names are one namespace, so that a name in a record means one of them.
CREATE TABLE principal (
    name TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('person', 'service')),
    email TEXT,
    -- whom an OpenID provider calls this: its address, a space, and its name for them
    subject TEXT UNIQUE,
    -- argon2id, as a PHC string
    password TEXT,
    disabled BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL
);

-- Groups are what their members say; `source` is `here` or `oidc`, whose rows each login replaces.
CREATE TABLE membership (
    group_name TEXT NOT NULL,
    principal TEXT NOT NULL REFERENCES principal (name) ON DELETE CASCADE,
    source TEXT NOT NULL CHECK (source IN ('here', 'oidc')),
    PRIMARY KEY (group_name, principal, source)
);

-- `who` is a principal's name, `group:<name>`, or `everyone`: all who have a credential.
CREATE TABLE access_grant (
    who TEXT NOT NULL,
    role TEXT NOT NULL CHECK (role IN ('reader', 'author', 'reviewer', 'publisher', 'admin')),
    pattern TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    PRIMARY KEY (who, role, pattern)
);

-- A token is shown once; `hash` is its SHA-256, `prefix` the part of it that may be shown.
CREATE TABLE token (
    prefix TEXT PRIMARY KEY NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    principal TEXT NOT NULL REFERENCES principal (name) ON DELETE CASCADE,
    label TEXT NOT NULL,
    -- what it may do at most; nothing where it may do all that its owner may
    role TEXT CHECK (role IN ('reader', 'author', 'reviewer', 'publisher', 'admin')),
    -- where it may do that, a pattern a line; nothing for everywhere
    patterns TEXT,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    used_at BIGINT
);
CREATE INDEX token_principal ON token (principal);

-- A browser that has signed in; `hash` is the SHA-256 of its cookie, and `id` what a list shows of it.
CREATE TABLE session (
    id TEXT PRIMARY KEY NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    principal TEXT NOT NULL REFERENCES principal (name) ON DELETE CASCADE,
    -- the session of the OpenID provider, where it names one, for its logout
    provider_session TEXT,
    client TEXT,
    address TEXT,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX session_principal ON session (principal);
