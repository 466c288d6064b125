-- The tables of past sessions, as a list of migrations: see `ragcommon.migrations`.

-- Version 1

CREATE TABLE sessions (
    session_id TEXT PRIMARY KEY, title TEXT NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL
) STRICT;

CREATE TABLE turns (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, turn_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL REFERENCES sessions ON DELETE CASCADE, record BLOB NOT NULL
) STRICT;

CREATE INDEX turns_by_session ON turns (session_id, seq);

CREATE VIRTUAL TABLE turn_words USING fts5 (question, answer, tokenize = 'porter unicode61');

CREATE TRIGGER turn_words_follow AFTER DELETE ON turns
BEGIN DELETE FROM turn_words WHERE rowid = old.seq; END;

-- Version 2

ALTER TABLE sessions ADD COLUMN one_shot INTEGER NOT NULL DEFAULT 0;

-- Version 3
-- Cases outlive their sessions. `script` is the file of the cases of a run; "": the saved ones.

CREATE TABLE cases (case_id TEXT PRIMARY KEY, record BLOB NOT NULL) STRICT;

CREATE TABLE runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, script TEXT NOT NULL, record BLOB NOT NULL
) STRICT;

CREATE INDEX runs_by_script ON runs (script, seq);

-- Version 4

ALTER TABLE sessions ADD COLUMN notebook TEXT NOT NULL DEFAULT '';
