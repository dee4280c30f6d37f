-- When something of a session arrived last, by the clock of this machine, and how many requests of its
-- agent wait for an answer.
ALTER TABLE session ADD COLUMN heard INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;
UPDATE session SET heard = min(updated, CAST(strftime('%s', 'now') AS INTEGER) * 1000);
UPDATE session SET waiting = (SELECT count(*) FROM item
  WHERE item.session = session.key AND open = 1 AND kind = 'permission') WHERE ended = 0;
-- A session that is over does not run, whatever its last word was.
UPDATE session SET status = 'idle', info = '{"status":"idle"' || substr(info, 20)
  WHERE ended = 1 AND status = 'running' AND substr(info, 1, 19) = '{"status":"running"';
-- The session whose log tells what this one does: this one is not listed, searched or counted.
ALTER TABLE session ADD COLUMN copy_of INTEGER;
CREATE INDEX session_copy ON session (copy_of) WHERE copy_of IS NOT NULL;
