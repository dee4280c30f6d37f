-- Checksums of the rows beside the logs. Those of usage are three, as its parts come from several answers;
-- that of times of activity is a sum that statements can say.
ALTER TABLE audit ADD COLUMN crc INTEGER;
ALTER TABLE tag ADD COLUMN crc INTEGER;
ALTER TABLE call ADD COLUMN crc INTEGER;
ALTER TABLE edit ADD COLUMN crc INTEGER;
ALTER TABLE usage ADD COLUMN crc INTEGER;
ALTER TABLE usage ADD COLUMN at_crc INTEGER;
ALTER TABLE usage ADD COLUMN model_crc INTEGER;
ALTER TABLE active ADD COLUMN crc INTEGER;
UPDATE active SET crc = ms * 1048573 + hour * 8191 + session * 127;
