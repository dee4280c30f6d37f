-- The call below which an item stands, and whether it is shown at top level: what has no call above
-- it is, and what names one that is not there.
ALTER TABLE item ADD COLUMN parent TEXT;
ALTER TABLE item ADD COLUMN top INTEGER NOT NULL DEFAULT 1;

-- How the first prompt begins, and the order of its item.
ALTER TABLE session ADD COLUMN prompt TEXT;
ALTER TABLE session ADD COLUMN prompt_order INTEGER;
-- Calls of tools that are over, and those of them that failed.
ALTER TABLE session ADD COLUMN calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;

-- Files that calls changed, by the key of the call's item, and by how many lines.
CREATE TABLE edit (
  key     INTEGER NOT NULL,
  path    TEXT NOT NULL,
  added   INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  PRIMARY KEY (key, path)
) WITHOUT ROWID;
