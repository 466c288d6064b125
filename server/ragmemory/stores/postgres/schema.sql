-- The tables of a memory in PostgreSQL, as a list of migrations: see `ragcommon.migrations`.
-- What the columns hold is said in the schema of SQLite. Texts are compared by their bytes, as there.

-- Version 1

-- One row, which every write updates first: its lock orders the commits. `version` is random, since a
-- counter would repeat after a restore.
CREATE TABLE memory(
    id BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (id),
    migrations BIGINT NOT NULL,
    version BIGINT NOT NULL,
    last_chunk BIGINT NOT NULL
);

INSERT INTO memory(migrations, version, last_chunk) VALUES(0, 0, 0);

CREATE TABLE meta(key TEXT COLLATE "C" NOT NULL PRIMARY KEY, value TEXT COLLATE "C" NOT NULL);

INSERT INTO meta(key, value) VALUES('store_id', replace(CAST(gen_random_uuid() AS TEXT), '-', ''));

CREATE TABLE documents(
    number BIGINT PRIMARY KEY,
    document_id TEXT COLLATE "C" NOT NULL UNIQUE,
    uri TEXT COLLATE "C" NOT NULL UNIQUE,
    title TEXT COLLATE "C" NOT NULL,
    digest BYTEA NOT NULL,
    metadata TEXT COLLATE "C" NOT NULL,
    properties JSONB NOT NULL GENERATED ALWAYS AS (CAST(metadata AS JSONB)) STORED, -- for filters
    chunks BIGINT NOT NULL,
    characters BIGINT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    added_at TEXT COLLATE "C" NOT NULL,
    updated_at TEXT COLLATE "C" NOT NULL,
    hidden BIGINT NOT NULL DEFAULT 0,
    stamp TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX documents_hidden ON documents(hidden) WHERE hidden <> 0;

CREATE INDEX documents_properties ON documents USING gin(properties);

CREATE TABLE chunks(
    chunk_id BIGINT PRIMARY KEY,
    document BIGINT NOT NULL REFERENCES documents(number) ON DELETE CASCADE,
    heading TEXT COLLATE "C" NOT NULL,
    start_line BIGINT NOT NULL,
    end_line BIGINT NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    context TEXT COLLATE "C" NOT NULL DEFAULT '',
    surroundings TEXT COLLATE "C" NOT NULL DEFAULT '',
    places TEXT COLLATE "C" NOT NULL DEFAULT '',
    headings TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE INDEX chunks_of_document ON chunks(document);

CREATE TABLE embeddings(
    chunk_id BIGINT PRIMARY KEY REFERENCES chunks(chunk_id) ON DELETE CASCADE,
    vector BYTEA NOT NULL,
    input BYTEA
);

ALTER TABLE embeddings ALTER COLUMN vector SET STORAGE EXTERNAL;

CREATE INDEX embeddings_inputs ON embeddings(input) WHERE input IS NOT NULL;

CREATE TABLE other_embeddings(
    chunk_id BIGINT PRIMARY KEY REFERENCES chunks(chunk_id) ON DELETE CASCADE,
    vector BYTEA NOT NULL,
    input BYTEA
);

ALTER TABLE other_embeddings ALTER COLUMN vector SET STORAGE EXTERNAL;

CREATE INDEX other_embeddings_inputs ON other_embeddings(input) WHERE input IS NOT NULL;

CREATE TABLE removed_embeddings(
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    input BYTEA NOT NULL UNIQUE,
    vector BYTEA NOT NULL
);

CREATE TABLE removals(seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, chunk_id BIGINT NOT NULL);

CREATE FUNCTION note_removals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO removals(chunk_id) SELECT chunk_id FROM gone ORDER BY chunk_id; RETURN NULL; END $$;

CREATE TRIGGER log_removal AFTER DELETE ON chunks REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION note_removals();

CREATE FUNCTION note_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE memory SET last_chunk = greatest(last_chunk, (SELECT max(chunk_id) FROM added));
    RETURN NULL;
END $$;

CREATE TRIGGER log_chunks AFTER INSERT ON chunks REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION note_chunks();

CREATE TABLE fulltext(rowid BIGINT PRIMARY KEY, words TSVECTOR NOT NULL);

CREATE INDEX fulltext_words ON fulltext USING gin(words);

CREATE TABLE journal(
    seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    document_id TEXT COLLATE "C" NOT NULL,
    uri TEXT COLLATE "C" NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    host TEXT COLLATE "C" NOT NULL DEFAULT '',
    write_group TEXT COLLATE "C" NOT NULL DEFAULT '',
    undone BIGINT NOT NULL DEFAULT 0,
    before_text TEXT COLLATE "C",
    before_metadata TEXT COLLATE "C",
    before_added_at TEXT COLLATE "C",
    before_document BIGINT,
    before_places TEXT COLLATE "C"
);

CREATE INDEX journal_undoable ON journal(seq) WHERE undone = 0 AND action <> 'restored';

CREATE INDEX journal_texts ON journal(seq) WHERE before_text IS NOT NULL;

CREATE INDEX journal_documents ON journal(before_document) WHERE before_document IS NOT NULL;

CREATE INDEX journal_groups ON journal(write_group)
WHERE undone = 0 AND action <> 'restored' AND write_group <> '';

CREATE INDEX journal_uris ON journal(uri) WHERE undone = 0 AND action <> 'restored';

CREATE TABLE pages(
    first BIGINT PRIMARY KEY,
    last BIGINT NOT NULL,
    document BIGINT NOT NULL REFERENCES documents(number) ON DELETE CASCADE
);

CREATE INDEX pages_of_document ON pages(document);

CREATE TABLE ingestions(
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id TEXT COLLATE "C" NOT NULL UNIQUE,
    request TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    beat DOUBLE PRECISION NOT NULL,
    job TEXT COLLATE "C" NOT NULL
);

CREATE TABLE sources(
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    uri TEXT COLLATE "C" NOT NULL UNIQUE,
    added_at TEXT COLLATE "C" NOT NULL,
    synced_at TEXT COLLATE "C" NOT NULL DEFAULT '',
    outcome TEXT COLLATE "C" NOT NULL DEFAULT 'null'
);

CREATE TABLE outlines(
    document_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    digest BYTEA NOT NULL,
    blocks TEXT COLLATE "C" NOT NULL
);

-- As SQLite names it.
CREATE FUNCTION instr(whole TEXT, part TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE
AS 'SELECT strpos(whole, part)';

-- Version 2

ALTER TABLE documents ADD COLUMN machine TEXT COLLATE "C" NOT NULL DEFAULT '';

-- On which machine a killed process ran is not known, so no process can resume its job.
DELETE FROM ingestions WHERE status = 'running';

ALTER TABLE ingestions ADD COLUMN machine TEXT COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE sources ADD COLUMN machine TEXT COLLATE "C" NOT NULL DEFAULT '', DROP CONSTRAINT sources_uri_key,
ADD UNIQUE(uri, machine);

-- Version 3

CREATE TABLE leases(
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    until DOUBLE PRECISION NOT NULL
);

CREATE TABLE remote_index(
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    chunk_id BIGINT NOT NULL,
    removal BIGINT NOT NULL,
    entry BIGINT NOT NULL,
    entry_at TEXT COLLATE "C" NOT NULL,
    chunks BIGINT NOT NULL,
    length DOUBLE PRECISION NOT NULL,
    total BYTEA NOT NULL
);

CREATE TABLE remote_terms(term BIGINT PRIMARY KEY, holding BIGINT NOT NULL);

CREATE UNLOGGED TABLE remote_changes(term BIGINT PRIMARY KEY, holding BIGINT NOT NULL);

-- Version 4
-- See `stores.published`: files of indexes in parts, which do not compress.

CREATE TABLE published_indexes(
    form BIGINT PRIMARY KEY,
    fingerprint TEXT COLLATE "C" NOT NULL,
    chunk_id BIGINT NOT NULL,
    manifest BYTEA NOT NULL,
    sizes TEXT COLLATE "C" NOT NULL
);

CREATE TABLE published_files(
    form BIGINT NOT NULL,
    file TEXT COLLATE "C" NOT NULL,
    part BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY(form, file, part)
);

ALTER TABLE published_files ALTER COLUMN data SET STORAGE EXTERNAL;

-- Version 5
-- For a few rows the planner would read the table from its beginning. A word that few chunks hold, or none, is
-- only found at its end: a question with one took 1.8 s at a million chunks.

CREATE FUNCTION holding_some(sought TSQUERY, most BIGINT) RETURNS SETOF BIGINT LANGUAGE sql STABLE
SET enable_seqscan = off AS 'SELECT rowid FROM fulltext WHERE words @@ sought LIMIT most';

-- Version 6
-- Also of undone writes and of undos, whose texts are versions too.

DROP INDEX journal_uris;

CREATE INDEX journal_uris ON journal(uri);
