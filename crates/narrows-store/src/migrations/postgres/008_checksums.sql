-- Checksums of rows. A row of an earlier version has none until there is time for it.
ALTER TABLE event ADD COLUMN crc bigint;
ALTER TABLE item ADD COLUMN crc bigint;
-- Of a session's header, of what is needed to go on, of its names, and of its numbers.
ALTER TABLE session ADD COLUMN facts_crc bigint;
ALTER TABLE session ADD COLUMN state_crc bigint;
ALTER TABLE session ADD COLUMN name_crc bigint;
ALTER TABLE session ADD COLUMN tally bigint;
ALTER TABLE source ADD COLUMN crc bigint;
ALTER TABLE token ADD COLUMN crc bigint;

CREATE TABLE damage (
  session bigint NOT NULL,
  first   bigint NOT NULL,
  last    bigint NOT NULL,
  name    text NOT NULL,
  at      bigint NOT NULL,
  PRIMARY KEY (session, first)
);
