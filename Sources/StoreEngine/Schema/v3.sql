-- What was counted of a replica, so that lists of stores need not read its changes: see ReplicaSummary. It holds as long
-- as the replica's last sequence is the one up to which it was counted. NULL: not counted.
ALTER TABLE replica ADD COLUMN counted INTEGER;
-- Whether a key has a value.
ALTER TABLE replica ADD COLUMN valued INTEGER;
-- How many keys have a pending change. NULL: not counted since `published` has changed.
ALTER TABLE replica ADD COLUMN pending INTEGER;
