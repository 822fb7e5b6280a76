-- One database per user. Everything below is this device's own; nothing outside reads it.
-- Integers that are unsigned in the program (origins, generations) are stored by their 64 bits.

-- Facts about this database: see DatabaseProperties.
CREATE TABLE property (
    name  TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

-- The random names under which this device has written, oldest first; the last one is in use.
-- A name that is no longer in use stays, so that its traces in the remote are known as ours.
CREATE TABLE origin (
    position     INTEGER PRIMARY KEY,
    bits         INTEGER NOT NULL UNIQUE,
    -- How often an upload has begun under this origin: so far its head in a remote is known as ours.
    publications INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The accounts that this device is, or was, signed in to. Two rows are always there:
-- 0, the values of somebody who never signed in, and -1, the values that never leave the device.
CREATE TABLE account (
    id         INTEGER PRIMARY KEY,
    identifier TEXT NOT NULL UNIQUE,
    -- Where the last complete download ended, as its backend understands it. NULL: none was complete. Empty: one
    -- was, and the next one has to begin from nothing.
    cursor     BLOB,
    -- When a complete look at the remote and an upload ended last, in microseconds since 1970. 0: never.
    pulled     INTEGER NOT NULL DEFAULT 0,
    pushed     INTEGER NOT NULL DEFAULT 0,
    -- When this device went on to another account, in microseconds since 1970. 0: never.
    left       INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO account (id, identifier) VALUES (0, ''), (-1, 'device');

-- An app's store on this device, whatever the account.
CREATE TABLE store (
    id         INTEGER PRIMARY KEY,
    identifier TEXT NOT NULL UNIQUE,
    -- The store's generation is the greatest of this one and those of its changes.
    generation INTEGER NOT NULL,
    -- From this generation on every visible change is known; a reader that has an older one gets everything.
    known_from INTEGER NOT NULL,
    -- The user removed it from this device: it is not downloaded again until its app opens it.
    forgotten  INTEGER NOT NULL DEFAULT 0,
    -- The store takes part in the account's sync. 0: it stays as it is on this device.
    synchronized INTEGER NOT NULL DEFAULT 1
) STRICT;

-- What one store holds in one account: the unit that is joined with the same store of other devices.
CREATE TABLE replica (
    id         INTEGER PRIMARY KEY,
    store      INTEGER NOT NULL REFERENCES store ON DELETE CASCADE,
    account    INTEGER NOT NULL REFERENCES account,
    -- The last sequence that was used, where the change that used it may be gone.
    sequence   INTEGER NOT NULL DEFAULT 0,
    -- The remote has acknowledged every change up to this sequence.
    published  INTEGER NOT NULL DEFAULT 0,
    -- The account's values have arrived: from here on writes are ordinary, before it they are provisional.
    downloaded INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account, store)
) STRICT;

-- The dots that a replica has taken in: for each origin the greatest n. Those of this device's own
-- writes are known from its changes, and are here only where these may be gone.
CREATE TABLE context (
    replica INTEGER NOT NULL REFERENCES replica ON DELETE CASCADE,
    origin  INTEGER NOT NULL,
    n       INTEGER NOT NULL,
    PRIMARY KEY (replica, origin)
) STRICT, WITHOUT ROWID;

-- The changes of a replica, only ever appended. The last row of a key is its entry, those before it
-- are its history; a row beyond the replica's published sequence is pending. So a write is one row.
CREATE TABLE change (
    -- The replica times 2^40, and the sequence: see ChangeID. SQLite appends by one number at less cost than by two.
    id          INTEGER PRIMARY KEY,
    replica     INTEGER NOT NULL GENERATED ALWAYS AS (id >> 40),
    -- Order within the replica, and the n in the dot of a write that was made here.
    sequence    INTEGER NOT NULL GENERATED ALWAYS AS (id & 0xFFFFFFFFFF),
    -- The store's generation in which the key's visible value changed last.
    generation  INTEGER NOT NULL,
    key         BLOB NOT NULL,
    -- The value in its canonical encoding; NULL is a tombstone.
    value       BLOB,
    -- The stamp. Its origin is also the dot's.
    provisional INTEGER NOT NULL,
    wall        INTEGER NOT NULL,
    counter     INTEGER NOT NULL,
    origin      INTEGER NOT NULL,
    -- The n of the dot, where it is not the sequence: the change was made elsewhere.
    n           INTEGER,
    -- What brought the row here: see Cause.
    cause       INTEGER NOT NULL,
    -- This device's clock when the row was written, in microseconds since 1970.
    time        INTEGER NOT NULL
) STRICT;
