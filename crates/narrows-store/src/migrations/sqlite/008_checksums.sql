-- Checksums of rows. A row of an earlier version has none until there is time for it.
ALTER TABLE event ADD COLUMN crc INTEGER;
ALTER TABLE item ADD COLUMN crc INTEGER;
-- Of a session's header, of what is needed to go on, of its names, and of its numbers.
ALTER TABLE session ADD COLUMN facts_crc INTEGER;
ALTER TABLE session ADD COLUMN state_crc INTEGER;
ALTER TABLE session ADD COLUMN name_crc INTEGER;
ALTER TABLE session ADD COLUMN tally INTEGER;
ALTER TABLE source ADD COLUMN crc INTEGER;
ALTER TABLE token ADD COLUMN crc INTEGER;

-- What was durable once and was not there when the store was opened.
CREATE TABLE damage (
  session INTEGER NOT NULL,
  first   INTEGER NOT NULL,
  last    INTEGER NOT NULL,
  name    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  PRIMARY KEY (session, first)
) WITHOUT ROWID;
