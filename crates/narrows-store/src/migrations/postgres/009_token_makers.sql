-- Which token made which: what a token made is revoked with it.
CREATE TABLE made (token text PRIMARY KEY, maker text NOT NULL);
CREATE INDEX made_maker ON made (maker);
INSERT INTO made SELECT a.detail, a.token FROM audit a
  WHERE a.action = 'make token' AND a.detail IN (SELECT id FROM token) AND a.detail <> a.token
  ON CONFLICT DO NOTHING;
