-- Sessions that narrows runs: the agent, where it works (a path of this machine: nothing shows it),
-- its own id of the session, and how many processes there were.
CREATE TABLE run (
  session INTEGER PRIMARY KEY,
  agent   TEXT NOT NULL,
  cwd     TEXT NOT NULL,
  native  TEXT,
  mode    TEXT,
  model   TEXT,
  runs    INTEGER NOT NULL DEFAULT 0
);

-- What was sent to an agent, in order. `after` is the log's last event before the turn, `until` the
-- one that ended it. The body is there until the turn begins: then the log has it, cleaned.
CREATE TABLE message (
  session INTEGER NOT NULL,
  number  INTEGER NOT NULL,
  key     TEXT,
  digest  BLOB NOT NULL,
  body    TEXT NOT NULL,
  state   TEXT NOT NULL,
  after   INTEGER,
  until   INTEGER,
  created INTEGER NOT NULL,
  PRIMARY KEY (session, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX message_key ON message (session, key) WHERE key IS NOT NULL;
CREATE INDEX message_open ON message (state, session) WHERE state IN ('queued', 'running');
