-- Sessions of projects that are left out since they were read: kept, and shown nowhere.
ALTER TABLE session ADD COLUMN left_out BIGINT NOT NULL DEFAULT 0;
