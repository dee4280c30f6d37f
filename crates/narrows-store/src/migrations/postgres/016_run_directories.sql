-- Folders beside that of the session in which its agent may work, as a JSON list of paths.
ALTER TABLE run ADD COLUMN directories TEXT;
