"""The tables, as a list of migrations. A released migration is never edited; changes are appended.

What the columns hold is said in `sqlite.schema`. Texts are compared by their bytes, as in SQLite.
"""

from __future__ import annotations

_TEXT = 'TEXT COLLATE "C" NOT NULL'
_NULLABLE = 'TEXT COLLATE "C"'
_ID = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"

_FIRST = (
    # One row, which every write updates first: its lock orders the commits. `version` is random, since a
    # counter would repeat after a restore.
    """
    CREATE TABLE memory(
        id BOOLEAN PRIMARY KEY DEFAULT TRUE CHECK (id),
        migrations BIGINT NOT NULL,
        version BIGINT NOT NULL,
        last_chunk BIGINT NOT NULL
    )
    """,
    "INSERT INTO memory(migrations, version, last_chunk) VALUES(0, 0, 0)",
    f"CREATE TABLE meta(key {_TEXT} PRIMARY KEY, value {_TEXT})",
    "INSERT INTO meta(key, value) VALUES('store_id', replace(CAST(gen_random_uuid() AS TEXT), '-', ''))",
    f"""
    CREATE TABLE documents(
        number BIGINT PRIMARY KEY,
        document_id {_TEXT} UNIQUE,
        uri {_TEXT} UNIQUE,
        title {_TEXT},
        digest BYTEA NOT NULL,
        metadata {_TEXT},
        properties JSONB NOT NULL GENERATED ALWAYS AS (CAST(metadata AS JSONB)) STORED, -- for filters
        chunks BIGINT NOT NULL,
        characters BIGINT NOT NULL,
        created DOUBLE PRECISION NOT NULL,
        added_at {_TEXT},
        updated_at {_TEXT},
        hidden BIGINT NOT NULL DEFAULT 0,
        stamp {_TEXT} DEFAULT ''
    )
    """,
    "CREATE INDEX documents_hidden ON documents(hidden) WHERE hidden <> 0",
    "CREATE INDEX documents_properties ON documents USING gin(properties)",
    f"""
    CREATE TABLE chunks(
        chunk_id BIGINT PRIMARY KEY,
        document BIGINT NOT NULL REFERENCES documents(number) ON DELETE CASCADE,
        heading {_TEXT},
        start_line BIGINT NOT NULL,
        end_line BIGINT NOT NULL,
        text {_TEXT},
        context {_TEXT} DEFAULT '',
        surroundings {_TEXT} DEFAULT '',
        places {_TEXT} DEFAULT '',
        headings {_TEXT} DEFAULT ''
    )
    """,
    "CREATE INDEX chunks_of_document ON chunks(document)",
    *(
        statement
        for table in ("embeddings", "other_embeddings")
        for statement in (
            f"""
            CREATE TABLE {table}(
                chunk_id BIGINT PRIMARY KEY REFERENCES chunks(chunk_id) ON DELETE CASCADE,
                vector BYTEA NOT NULL,
                input BYTEA
            )
            """,
            # Vectors do not compress.
            f"ALTER TABLE {table} ALTER COLUMN vector SET STORAGE EXTERNAL",
            f"CREATE INDEX {table}_inputs ON {table}(input) WHERE input IS NOT NULL",
        )
    ),
    f"CREATE TABLE removed_embeddings(number {_ID}, input BYTEA NOT NULL UNIQUE, vector BYTEA NOT NULL)",
    f"CREATE TABLE removals(seq {_ID}, chunk_id BIGINT NOT NULL)",
    """
    CREATE FUNCTION note_removals() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO removals(chunk_id) SELECT chunk_id FROM gone ORDER BY chunk_id; RETURN NULL; END $$
    """,
    """
    CREATE TRIGGER log_removal AFTER DELETE ON chunks REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION note_removals()
    """,
    """
    CREATE FUNCTION note_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        UPDATE memory SET last_chunk = greatest(last_chunk, (SELECT max(chunk_id) FROM added));
        RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER log_chunks AFTER INSERT ON chunks REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION note_chunks()
    """,
    "CREATE TABLE fulltext(rowid BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
    "CREATE INDEX fulltext_words ON fulltext USING gin(words)",
    f"""
    CREATE TABLE journal(
        seq {_ID},
        at {_TEXT},
        action {_TEXT},
        document_id {_TEXT},
        uri {_TEXT},
        client {_TEXT},
        session {_TEXT},
        host {_TEXT} DEFAULT '',
        write_group {_TEXT} DEFAULT '',
        undone BIGINT NOT NULL DEFAULT 0,
        before_text {_NULLABLE},
        before_metadata {_NULLABLE},
        before_added_at {_NULLABLE},
        before_document BIGINT,
        before_places {_NULLABLE}
    )
    """,
    "CREATE INDEX journal_undoable ON journal(seq) WHERE undone = 0 AND action <> 'restored'",
    "CREATE INDEX journal_texts ON journal(seq) WHERE before_text IS NOT NULL",
    "CREATE INDEX journal_documents ON journal(before_document) WHERE before_document IS NOT NULL",
    "CREATE INDEX journal_groups ON journal(write_group)"
    " WHERE undone = 0 AND action <> 'restored' AND write_group <> ''",
    "CREATE INDEX journal_uris ON journal(uri) WHERE undone = 0 AND action <> 'restored'",
    """
    CREATE TABLE pages(
        first BIGINT PRIMARY KEY,
        last BIGINT NOT NULL,
        document BIGINT NOT NULL REFERENCES documents(number) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX pages_of_document ON pages(document)",
    f"""
    CREATE TABLE ingestions(
        number {_ID},
        job_id {_TEXT} UNIQUE,
        request {_TEXT},
        status {_TEXT},
        run_id {_TEXT},
        beat DOUBLE PRECISION NOT NULL,
        job {_TEXT}
    )
    """,
    f"""
    CREATE TABLE sources(
        number {_ID},
        uri {_TEXT} UNIQUE,
        added_at {_TEXT},
        synced_at {_TEXT} DEFAULT '',
        outcome {_TEXT} DEFAULT 'null'
    )
    """,
    f"CREATE TABLE outlines(document_id {_TEXT} PRIMARY KEY, digest BYTEA NOT NULL, blocks {_TEXT})",
    # As SQLite names it.
    """
    CREATE FUNCTION instr(whole TEXT, part TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE
    AS 'SELECT strpos(whole, part)'
    """,
)

_MACHINES = (
    f"ALTER TABLE documents ADD COLUMN machine {_TEXT} DEFAULT ''",
    # On which machine a killed process ran is not known, so no process can resume its job.
    "DELETE FROM ingestions WHERE status = 'running'",
    f"ALTER TABLE ingestions ADD COLUMN machine {_TEXT} DEFAULT ''",
    f"ALTER TABLE sources ADD COLUMN machine {_TEXT} DEFAULT '', DROP CONSTRAINT sources_uri_key,"
    " ADD UNIQUE(uri, machine)",
)

_REMOTE = (
    f"CREATE TABLE leases(name {_TEXT} PRIMARY KEY, holder {_TEXT}, until DOUBLE PRECISION NOT NULL)",
    f"""
    CREATE TABLE remote_index(
        name {_TEXT} PRIMARY KEY,
        chunk_id BIGINT NOT NULL,
        removal BIGINT NOT NULL,
        entry BIGINT NOT NULL,
        entry_at {_TEXT},
        chunks BIGINT NOT NULL,
        length DOUBLE PRECISION NOT NULL,
        total BYTEA NOT NULL
    )
    """,
    "CREATE TABLE remote_terms(term BIGINT PRIMARY KEY, holding BIGINT NOT NULL)",
    "CREATE UNLOGGED TABLE remote_changes(term BIGINT PRIMARY KEY, holding BIGINT NOT NULL)",
)

# See `stores.published`: files of indexes in parts, which do not compress.
_PUBLISHED = (
    f"""
    CREATE TABLE published_indexes(
        form BIGINT PRIMARY KEY,
        fingerprint {_TEXT},
        chunk_id BIGINT NOT NULL,
        manifest BYTEA NOT NULL,
        sizes {_TEXT}
    )
    """,
    f"""
    CREATE TABLE published_files(
        form BIGINT NOT NULL,
        file {_TEXT},
        part BIGINT NOT NULL,
        data BYTEA NOT NULL,
        PRIMARY KEY(form, file, part)
    )
    """,
    "ALTER TABLE published_files ALTER COLUMN data SET STORAGE EXTERNAL",
)

# For a few rows the planner would read the table from its beginning. A word that few chunks hold, or none, is
# only found at its end: a question with one took 1.8 s at a million chunks.
_SOME = (
    """
    CREATE FUNCTION holding_some(sought TSQUERY, most BIGINT) RETURNS SETOF BIGINT LANGUAGE sql STABLE
    SET enable_seqscan = off AS 'SELECT rowid FROM fulltext WHERE words @@ sought LIMIT most'
    """,
)

# Also of undone writes and of undos, whose texts are versions too.
_ALL_VERSIONS = ("DROP INDEX journal_uris", "CREATE INDEX journal_uris ON journal(uri)")

MIGRATIONS: tuple[tuple[str, ...], ...] = (_FIRST, _MACHINES, _REMOTE, _PUBLISHED, _SOME, _ALL_VERSIONS)
