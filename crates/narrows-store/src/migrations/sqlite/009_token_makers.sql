-- Which token made which: what a token made is revoked with it.
CREATE TABLE made (token TEXT PRIMARY KEY, maker TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX made_maker ON made (maker);
INSERT OR IGNORE INTO made SELECT a.detail, a.token FROM audit a
  WHERE a.action = 'make token' AND a.detail IN (SELECT id FROM token) AND a.detail <> a.token;
