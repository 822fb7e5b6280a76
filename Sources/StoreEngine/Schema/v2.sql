-- How many entries of a replica break the rules for keys and values, so that they are shown to nobody.
ALTER TABLE replica ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;
