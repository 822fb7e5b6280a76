-- Which devices wrote under which origins, as polls have found them, oldest first. A device takes a new origin when its
-- machine starts, and history names it long after its head under a former one is gone.
CREATE TABLE writer (
    id      INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES account ON DELETE CASCADE,
    origin  INTEGER NOT NULL,
    device  TEXT NOT NULL,
    UNIQUE (account, origin)
) STRICT;
