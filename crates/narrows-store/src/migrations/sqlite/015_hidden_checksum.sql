-- What the marks that hide a session are checked by, in numbers that statements can say.
ALTER TABLE session ADD COLUMN hidden INTEGER NOT NULL DEFAULT 1;
UPDATE session SET hidden = coalesce(copy_of, 0) * 8191 + left_out * 524287 + 1
  WHERE copy_of IS NOT NULL OR left_out <> 0;
