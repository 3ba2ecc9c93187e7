-- How often it was delivered within that second: who asks for the same again and again has one row a second.
ALTER TABLE delivery ADD COLUMN times BIGINT NOT NULL DEFAULT 1;
