-- Replicas that are gone, and whose changes are removed bit by bit, because there may be hundreds of megabytes of them.
CREATE TABLE leftover (
    replica INTEGER PRIMARY KEY
) STRICT;
