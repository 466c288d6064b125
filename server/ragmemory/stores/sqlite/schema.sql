-- The tables of a memory in a file, as a list of migrations: see `ragcommon.migrations`.

-- Version 1

-- store_id; embedder, dimensions: of the embeddings; reembedded: when all were last recomputed;
-- next_embedder, next_dimensions, kept_embedder, kept_dimensions, kept_bytes: see `stores.reembedding`
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

INSERT INTO meta VALUES('store_id', lower(hex(randomblob(16))));

-- A document's text is the texts of its chunks, in order: stored once.
CREATE TABLE documents(
    number INTEGER PRIMARY KEY,
    document_id TEXT NOT NULL UNIQUE,
    uri TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    digest BLOB NOT NULL, -- SHA-256 of the text
    metadata TEXT NOT NULL, -- JSON, keys sorted
    chunks INTEGER NOT NULL,
    characters INTEGER NOT NULL,
    created REAL NOT NULL, -- seconds since 1970: metadata.created_at, else when it was added
    added_at TEXT NOT NULL, -- ISO 8601, UTC
    updated_at TEXT NOT NULL
) STRICT;

-- AUTOINCREMENT: an id never comes back, so an index can ask for "everything after this one".
CREATE TABLE chunks(
    chunk_id INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES documents(number) ON DELETE CASCADE,
    heading TEXT NOT NULL,
    start_line INTEGER NOT NULL,
    end_line INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;

CREATE INDEX chunks_of_document ON chunks(document);

-- Apart from the chunks, so that reading texts does not page through vectors.
CREATE TABLE embeddings(
    chunk_id INTEGER PRIMARY KEY REFERENCES chunks(chunk_id) ON DELETE CASCADE,
    vector BLOB NOT NULL -- (d,) little-endian float16, unit length
) STRICT;

CREATE TABLE removals(seq INTEGER PRIMARY KEY AUTOINCREMENT, chunk_id INTEGER NOT NULL) STRICT;

CREATE TRIGGER log_removal AFTER DELETE ON chunks
BEGIN INSERT INTO removals(chunk_id) VALUES(old.chunk_id); END;

-- Contentless: the texts are in `chunks` already. No column sizes: ranking is not done here.
CREATE VIRTUAL TABLE fulltext USING fts5(
    title, heading, text, content='', columnsize=0,
    tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

CREATE TABLE journal(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL, -- ISO 8601, UTC
    action TEXT NOT NULL,
    document_id TEXT NOT NULL,
    uri TEXT NOT NULL,
    client TEXT NOT NULL,
    session TEXT NOT NULL,
    undone INTEGER NOT NULL DEFAULT 0,
    before_text TEXT, -- what undo puts back; NULL where there was no such document, or it is too long ago
    before_metadata TEXT,
    before_added_at TEXT
) STRICT;

CREATE INDEX journal_undoable ON journal(seq) WHERE undone = 0 AND action <> 'restored';

CREATE INDEX journal_texts ON journal(seq) WHERE before_text IS NOT NULL;

PRAGMA application_id = 1380009805;

-- Version 2
-- A long document is written and removed in several transactions; until the last one it is hidden.

-- See `stores.hidden`. A hidden document has a random uri and id.
ALTER TABLE documents ADD COLUMN hidden INTEGER NOT NULL DEFAULT 0;

CREATE INDEX documents_hidden ON documents(hidden) WHERE hidden <> 0;

-- The ids, without gaps, of those of its chunks that have embeddings and full text. Visible documents that
-- were written in one transaction have no pages.
CREATE TABLE pages(
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL, -- inclusive
    document INTEGER NOT NULL REFERENCES documents(number) ON DELETE CASCADE
) STRICT;

CREATE INDEX pages_of_document ON pages(document);

-- The hidden document whose chunks hold the text that undo puts back; before_text is '' then.
ALTER TABLE journal ADD COLUMN before_document INTEGER;

CREATE INDEX journal_documents ON journal(before_document) WHERE before_document IS NOT NULL;

-- Version 3
-- See `Chunk.context`. Chunks of earlier releases have none until their document changes.

ALTER TABLE chunks ADD COLUMN context TEXT NOT NULL DEFAULT '';

-- Version 4
-- Writes that are undone together: see `Origin.group`.

ALTER TABLE journal ADD COLUMN write_group TEXT NOT NULL DEFAULT '';

CREATE INDEX journal_groups ON journal(write_group)
WHERE undone = 0 AND action <> 'restored' AND write_group <> '';

-- Version 5

-- Identifies the state of the file that a document was read from: its size and time of change. "": none.
ALTER TABLE documents ADD COLUMN stamp TEXT NOT NULL DEFAULT '';

CREATE TABLE ingestions(
    number INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL, -- JSON of what was asked for: the same request is the same job while it runs
    status TEXT NOT NULL,
    run_id TEXT NOT NULL, -- the process that works on it
    beat REAL NOT NULL, -- seconds since 1970 when that process last said so
    job TEXT NOT NULL -- JSON of an Ingestion
) STRICT;

-- Version 6
-- The files and folders that memory is kept in step with.

CREATE TABLE sources(
    number INTEGER PRIMARY KEY,
    uri TEXT NOT NULL UNIQUE,
    added_at TEXT NOT NULL, -- ISO 8601, UTC
    synced_at TEXT NOT NULL DEFAULT '', -- when its last sync ended; "": never
    outcome TEXT NOT NULL DEFAULT 'null' -- JSON of the SyncOutcome of that sync
) STRICT;

-- Version 7
-- The writes to one document: its versions, and whether a write is its last.

CREATE INDEX journal_uris ON journal(uri) WHERE undone = 0 AND action <> 'restored';

-- Version 8
-- See `Chunk.surroundings`. Chunks of earlier releases have none until their document changes.

ALTER TABLE chunks ADD COLUMN surroundings TEXT NOT NULL DEFAULT '';

-- Version 9
-- Pages, sheets, slides, messages: see `ragcommon.text.places`. JSON; "" if there are none.

ALTER TABLE chunks ADD COLUMN places TEXT NOT NULL DEFAULT '';

ALTER TABLE journal ADD COLUMN before_places TEXT;

-- Version 10
-- So that nothing is embedded twice: see `stores.reuse`.

-- A digest of the embedder and what it embedded; NULL if embedding it again is cheap.
ALTER TABLE embeddings ADD COLUMN input BLOB;

CREATE INDEX embeddings_inputs ON embeddings(input) WHERE input IS NOT NULL;

-- Of chunks that no longer exist, the last ones.
CREATE TABLE removed_embeddings(
    number INTEGER PRIMARY KEY,
    input BLOB NOT NULL UNIQUE,
    vector BLOB NOT NULL
) STRICT;

-- Version 11
-- The host of the client: see `Origin.host`.

ALTER TABLE journal ADD COLUMN host TEXT NOT NULL DEFAULT '';

-- Version 12
-- New embeddings while they are made, then the old ones: see `stores.reembedding`. They change places with
-- `embeddings`, so the two tables have the same columns.

CREATE TABLE other_embeddings(
    chunk_id INTEGER PRIMARY KEY REFERENCES chunks(chunk_id) ON DELETE CASCADE,
    vector BLOB NOT NULL,
    input BLOB
) STRICT;

CREATE INDEX other_embeddings_inputs ON other_embeddings(input) WHERE input IS NOT NULL;

-- Version 13
-- The ids of the blocks of documents whose blocks were shown or edited.

-- A row stays when its document is removed: undo brings both back.
CREATE TABLE outlines(
    document_id TEXT PRIMARY KEY,
    digest BLOB NOT NULL, -- SHA-256 of the text that has these blocks
    blocks TEXT NOT NULL -- JSON: see `blocks.outline`
) STRICT, WITHOUT ROWID;

-- Version 14
-- See `Chunk.headings`. Chunks of earlier releases have none until their document is read again.

ALTER TABLE chunks ADD COLUMN headings TEXT NOT NULL DEFAULT '';

-- Version 15
-- Whose files a document, a source and a job are about: see `Engine.machine`.

ALTER TABLE documents ADD COLUMN machine TEXT NOT NULL DEFAULT '';

ALTER TABLE ingestions ADD COLUMN machine TEXT NOT NULL DEFAULT '';

CREATE TABLE new_sources(
    number INTEGER PRIMARY KEY,
    uri TEXT NOT NULL,
    added_at TEXT NOT NULL,
    synced_at TEXT NOT NULL DEFAULT '',
    outcome TEXT NOT NULL DEFAULT 'null',
    machine TEXT NOT NULL DEFAULT '',
    UNIQUE(uri, machine)
) STRICT;

INSERT INTO new_sources(number, uri, added_at, synced_at, outcome)
SELECT number, uri, added_at, synced_at, outcome FROM sources;

DROP TABLE sources;

ALTER TABLE new_sources RENAME TO sources;

-- Version 16
-- See `stores.leases`, and `stores.remote`: of an index outside this process.

CREATE TABLE leases(name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) STRICT;

CREATE TABLE remote_index(
    name TEXT PRIMARY KEY,
    chunk_id INTEGER NOT NULL,
    removal INTEGER NOT NULL,
    entry INTEGER NOT NULL,
    entry_at TEXT NOT NULL,
    chunks INTEGER NOT NULL,
    length REAL NOT NULL,
    total BLOB NOT NULL
) STRICT;

-- How many of its chunks contain each term; a term is 32 bits of its hash.
CREATE TABLE remote_terms(term INTEGER PRIMARY KEY, holding INTEGER NOT NULL) STRICT;

-- Empty outside of a transaction.
CREATE TABLE remote_changes(term INTEGER PRIMARY KEY, holding INTEGER NOT NULL) STRICT;

-- Version 17
-- Also of undone writes and of undos, whose texts are versions too.

DROP INDEX journal_uris;

CREATE INDEX journal_uris ON journal(uri);
