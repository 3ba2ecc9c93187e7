-- The line of a render that a comment was made on, with the one before it and the one after it, as JSON: what a prompt renders
-- to changes with its partials, and this is by what the line is found again.
ALTER TABLE proposal_comment ADD COLUMN quote TEXT;
