-- The first answer of each session: those that have the same one are forks of each other.
CREATE TABLE first_answer (session INTEGER PRIMARY KEY, answer TEXT NOT NULL);
CREATE INDEX first_answer_of ON first_answer (answer);
INSERT OR IGNORE INTO first_answer
  SELECT u.session, substr(u.id, 1, instr(u.id, '/') - 1) FROM usage u
  WHERE u.cost IS NULL AND u.sub = 0 AND instr(u.id, '/') > 1 AND u.at IS NOT NULL
  AND u.id NOT LIKE (SELECT s.id FROM session s WHERE s.key = u.session) || '/%'
  ORDER BY u.session, u.at;
