-- Whoever wrote a session last: others may have, though its log ends where it did.
ALTER TABLE session ADD COLUMN pen INTEGER NOT NULL DEFAULT 0;

-- Who runs a session's agent: a node, by a number that grows with every change of hands. Whoever
-- writes with an older number is refused. Until when, by the clock of the database.
ALTER TABLE run ADD COLUMN node TEXT;
ALTER TABLE run ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN lease INTEGER;
-- How it stands, for other nodes to show.
ALTER TABLE run ADD COLUMN shown TEXT;
CREATE INDEX run_lease ON run (lease) WHERE lease IS NOT NULL;

-- What somebody asks of an agent that another node runs, and what came of it.
CREATE TABLE command (
  id      TEXT PRIMARY KEY,
  session INTEGER NOT NULL,
  body    TEXT NOT NULL,
  answer  TEXT,
  created INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX command_session ON command (session) WHERE answer IS NULL;
CREATE INDEX command_created ON command (created);

-- When a session changed, and which change that was, by and large: an append leaves these as they are,
-- mostly, and so their indexes. See `era.rs`.
ALTER TABLE session ADD COLUMN updated_era INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN touched_era INTEGER NOT NULL DEFAULT 0;
UPDATE session SET updated_era = updated >> 12, touched_era = touched >> 7;
DROP INDEX session_touched;
DROP INDEX session_updated;
CREATE INDEX session_touched ON session (touched_era);
CREATE INDEX session_updated ON session (updated_era);
CREATE TRIGGER session_changed AFTER UPDATE OF updated, touched ON session
WHEN NEW.updated >> 12 <> NEW.updated_era OR NEW.touched >> 7 <> NEW.touched_era BEGIN
  UPDATE session SET updated_era = NEW.updated >> 12, touched_era = NEW.touched >> 7 WHERE key = NEW.key;
END;
