-- What a request with a key held: how many bytes, and their SHA-256. Another body is no repetition.
ALTER TABLE request ADD COLUMN digest BLOB;
