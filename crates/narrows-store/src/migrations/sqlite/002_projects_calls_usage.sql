-- The folder in which the agent worked, by its last name.
ALTER TABLE session ADD COLUMN project TEXT;
-- The agent's own id of the session.
ALTER TABLE session ADD COLUMN native TEXT;
CREATE INDEX session_native ON session (native) WHERE native IS NOT NULL;
-- Lists are in the order of the sessions' own times.
CREATE INDEX session_updated ON session (updated, key);

-- The file of a source. What it is known by: where it lies, what its disk calls it, how it begins,
-- and the last line that was read.
ALTER TABLE source ADD COLUMN node TEXT;
ALTER TABLE source ADD COLUMN size INTEGER;
ALTER TABLE source ADD COLUMN changed INTEGER;
ALTER TABLE source ADD COLUMN head BLOB;
ALTER TABLE source ADD COLUMN tail BLOB;
ALTER TABLE source ADD COLUMN tail_at INTEGER;
-- Where the line after the last rest begins.
ALTER TABLE source ADD COLUMN rest_offset INTEGER NOT NULL DEFAULT 0;
-- The call whose subagent wrote it, and whether it is there no more.
ALTER TABLE source ADD COLUMN parent TEXT;
ALTER TABLE source ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;
-- The parser that read it.
ALTER TABLE source ADD COLUMN parser INTEGER;
CREATE INDEX source_path ON source (path) WHERE path IS NOT NULL;

-- Which records of a session were read, eight bytes each: for files that are not what they were.
CREATE TABLE seen (
  session INTEGER NOT NULL,
  seq     INTEGER NOT NULL,
  source  INTEGER NOT NULL,
  records BLOB NOT NULL,
  PRIMARY KEY (session, seq, source)
) WITHOUT ROWID;

-- What each answer of a model used, once in however many sessions it stands; and what was paid.
CREATE TABLE usage (
  id          TEXT PRIMARY KEY,
  session     INTEGER NOT NULL,
  sub         INTEGER NOT NULL,
  at          INTEGER,
  model       TEXT,
  input       INTEGER NOT NULL DEFAULT 0,
  output      INTEGER NOT NULL DEFAULT 0,
  cache_read  INTEGER NOT NULL DEFAULT 0,
  cache_write INTEGER NOT NULL DEFAULT 0,
  cost        REAL
) WITHOUT ROWID;
CREATE INDEX usage_session ON usage (session);

-- Calls of tools, by the key of their item.
CREATE TABLE call (
  key    INTEGER PRIMARY KEY,
  name   TEXT NOT NULL,
  at     INTEGER,
  ms     INTEGER,
  failed INTEGER NOT NULL
);

-- How long something was going on, by hours since 1970.
CREATE TABLE active (
  session INTEGER NOT NULL,
  hour    INTEGER NOT NULL,
  ms      INTEGER NOT NULL,
  PRIMARY KEY (session, hour)
) WITHOUT ROWID;

-- What waits for the index of search: a row of its own, so that items need not be written again.
CREATE TABLE fresh (key INTEGER PRIMARY KEY);
INSERT INTO fresh SELECT key FROM item;
DROP INDEX item_new;
ALTER TABLE item DROP COLUMN indexed;

-- Sessions that were deleted here though the agent's files are still there: they are not read again.
CREATE TABLE forgotten (label TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;

-- Which three letters stand in which item, each once, as words made of them.
DROP TABLE search;
CREATE VIRTUAL TABLE search USING fts5 (
  text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
