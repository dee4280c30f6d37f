ALTER TABLE session ADD COLUMN heard bigint NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN waiting bigint NOT NULL DEFAULT 0;
UPDATE session SET heard = least(updated, CAST(extract(epoch FROM now()) * 1000 AS bigint));
UPDATE session SET waiting = (SELECT count(*) FROM item
  WHERE item.session = session.key AND open = 1 AND kind = 'permission') WHERE ended = 0;
UPDATE session SET status = 'idle', info = '{"status":"idle"' || substr(info, 20)
  WHERE ended = 1 AND status = 'running' AND substr(info, 1, 19) = '{"status":"running"';
ALTER TABLE session ADD COLUMN copy_of bigint;
CREATE INDEX session_copy ON session (copy_of) WHERE copy_of IS NOT NULL;
