-- Checksums of all that had none. Those of numbers that statements change are sums that statements can say.
ALTER TABLE meta ADD COLUMN crc BIGINT;
-- Of a session's times and counts (`figures.rs`), and of what it is called beside its header.
ALTER TABLE session ADD COLUMN figures BIGINT;
ALTER TABLE session ADD COLUMN prompt_crc BIGINT;
ALTER TABLE session ADD COLUMN native_crc BIGINT;
ALTER TABLE session ADD COLUMN project_crc BIGINT;
UPDATE session SET figures = (created % 4294967291) * 8191 + (updated % 4294967291) * 16381
  + (heard % 4294967291) * 32749 + touched * 4093 + bytes * 2039 + ended * 131071 + waiting * 65521
  + calls * 1021 + failed * 509;
-- Rows that a repair made lacked these.
UPDATE session SET updated_era = updated >> 12, touched_era = touched >> 7
  WHERE updated_era <> updated >> 12 OR touched_era <> touched >> 7;
-- Pictures that are kept from now on have one of what they are beside their bytes.
ALTER TABLE blob ADD COLUMN crc BIGINT;
ALTER TABLE blob_use ADD COLUMN crc BIGINT;
ALTER TABLE source ADD COLUMN format_crc BIGINT;
ALTER TABLE source ADD COLUMN path_crc BIGINT;
ALTER TABLE source ADD COLUMN file_crc BIGINT;
ALTER TABLE seen ADD COLUMN crc BIGINT;
ALTER TABLE request ADD COLUMN crc BIGINT;
ALTER TABLE request ADD COLUMN answer_crc BIGINT;
ALTER TABLE request ADD COLUMN digest_crc BIGINT;
ALTER TABLE made ADD COLUMN crc BIGINT;
ALTER TABLE forgotten ADD COLUMN crc BIGINT;
ALTER TABLE first_answer ADD COLUMN crc BIGINT;
ALTER TABLE doomed ADD COLUMN crc BIGINT;
UPDATE doomed SET crc = session * 8191 + 127;
ALTER TABLE damage ADD COLUMN crc BIGINT;
ALTER TABLE run ADD COLUMN crc BIGINT;
ALTER TABLE run ADD COLUMN lease_crc BIGINT;
ALTER TABLE run ADD COLUMN shown_crc BIGINT;
ALTER TABLE message ADD COLUMN crc BIGINT;
-- Whether a count of tokens is final, as an agent keeps it, and whose it is.
ALTER TABLE usage ADD COLUMN kept BIGINT NOT NULL DEFAULT 0;
ALTER TABLE usage ADD COLUMN who BIGINT;
UPDATE usage SET who = session * 8191 + sub * 127 + kept * 31 + 1;
