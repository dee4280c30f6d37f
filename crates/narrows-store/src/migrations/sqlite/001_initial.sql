-- What the installation is: its key for marks, its counters.
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;

CREATE TABLE session (
  -- Never used again, so that rows of a deleted session cannot be taken for another's.
  key        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT NOT NULL UNIQUE,
  epoch      TEXT NOT NULL,
  label      TEXT UNIQUE,
  created    INTEGER NOT NULL,
  updated    INTEGER NOT NULL,
  -- Grows with every change of any session: the list is followed by it.
  touched    INTEGER NOT NULL,
  -- The last event, and the last one whose changes are all in the rows of items.
  seq        INTEGER NOT NULL DEFAULT 0,
  settled    INTEGER NOT NULL DEFAULT 0,
  items      INTEGER NOT NULL DEFAULT 0,
  next_order INTEGER NOT NULL DEFAULT 0,
  bytes      INTEGER NOT NULL DEFAULT 0,
  ended      INTEGER NOT NULL DEFAULT 0,
  title      TEXT,
  agent      TEXT,
  model      TEXT,
  status     TEXT,
  -- The header as it is shown, and with what is needed to go on.
  info       TEXT NOT NULL DEFAULT '{}',
  state      TEXT
);
CREATE INDEX session_touched ON session (touched);

CREATE TABLE tag (session INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (session, tag)) WITHOUT ROWID;
CREATE INDEX tag_tag ON tag (tag, session);

-- key = session << 32 | seq: the log of a session lies together, in order.
CREATE TABLE event (
  key      INTEGER PRIMARY KEY,
  kind     TEXT NOT NULL,
  event    TEXT NOT NULL,
  changes  TEXT,
  activity TEXT
);

-- key = session << 32 | order of the item. seq: the last event whose change is in the body.
CREATE TABLE item (
  key     INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  id      TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  open    INTEGER NOT NULL,
  indexed INTEGER NOT NULL DEFAULT 0,
  body    TEXT NOT NULL
);
CREATE UNIQUE INDEX item_id ON item (session, id);
CREATE INDEX item_new ON item (key) WHERE indexed = 0;
CREATE INDEX item_open ON item (session) WHERE open = 1;

CREATE TABLE blob (hash TEXT PRIMARY KEY, mime TEXT NOT NULL, size INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE blob_use (session INTEGER NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (session, hash)) WITHOUT ROWID;
CREATE INDEX blob_use_hash ON blob_use (hash);

-- Where packets come from. The only table that may hold paths of this machine; nothing shows it.
CREATE TABLE source (
  session  INTEGER NOT NULL,
  number   INTEGER NOT NULL,
  format   TEXT,
  path     TEXT,
  -- The last packet that was read, the last one of which nothing was held back, and the bytes.
  read     INTEGER NOT NULL DEFAULT 0,
  rest     INTEGER NOT NULL DEFAULT 0,
  offset   INTEGER NOT NULL DEFAULT 0,
  -- Its last event, to go on folding.
  last     TEXT,
  roots    TEXT,
  -- The order of the next item at the last rest, and which source was read last.
  rest_order INTEGER NOT NULL DEFAULT 0,
  at         INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session, number)
) WITHOUT ROWID;

-- Requests that may be sent again: the place of their first packet, and the answer once there is one.
CREATE TABLE request (
  session INTEGER NOT NULL,
  key     TEXT NOT NULL,
  first   INTEGER NOT NULL,
  answer  TEXT,
  created INTEGER NOT NULL,
  PRIMARY KEY (session, key)
) WITHOUT ROWID;
CREATE INDEX request_created ON request (created);

CREATE TABLE token (
  id       TEXT PRIMARY KEY,
  hash     BLOB NOT NULL UNIQUE,
  kind     TEXT NOT NULL,
  name     TEXT NOT NULL,
  scopes   TEXT NOT NULL,
  sessions TEXT,
  tags     TEXT,
  created  INTEGER NOT NULL,
  expires  INTEGER,
  used     INTEGER
) WITHOUT ROWID;

CREATE TABLE audit (
  key     INTEGER PRIMARY KEY AUTOINCREMENT,
  at      INTEGER NOT NULL,
  token   TEXT NOT NULL,
  action  TEXT NOT NULL,
  session TEXT,
  detail  TEXT
);

-- Sessions that are deleted, and whose rows are still to be removed.
CREATE TABLE doomed (session INTEGER PRIMARY KEY);

-- Which three letters stand in which item; the item's text itself is in its row.
CREATE VIRTUAL TABLE search USING fts5 (
  text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
