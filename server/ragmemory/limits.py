"""Limits of arguments. The tools' schemas state them, and the memory enforces them."""

from __future__ import annotations

# Characters of a uri, and of a glob for uris. Matching takes time in proportion to the product of the two
# lengths for each document; SQLite refuses globs of more than 50,000.
MAX_URI_LENGTH = 4_096
# Bytes of a document's metadata, or of a query's filter, as JSON. Every hit carries its document's metadata.
MAX_METADATA_BYTES = 65_536
# Levels of lists and objects in metadata or a filter. SQLite's JSON functions and msgspec stop at about
# 1,000.
MAX_DEPTH = 64
# Conditions of a filter, and tags in it. SQLite refuses expressions with more than 1,000 levels, and each
# condition adds one.
MAX_CONDITIONS = 100
MAX_TAGS = 100
# Maximum offset of a page of documents: more than a memory can hold. SQLite's integers end at 2^63.
MAX_OFFSET = 1_000_000_000_000
# Characters of a client's name that the journal keeps.
MAX_CLIENT_LENGTH = 200
# Characters of the name of a group of writes.
MAX_GROUP_LENGTH = 64
# Texts that one call compares with a query, and words to match with each text.
MAX_COMPARED_TEXTS, MAX_COMPARED_WORDS = 5_000, 64
# Paths that one ingestion names. A folder counts as one.
MAX_PATHS = 10_000
# Versions of a document that are listed and can be restored.
MAX_VERSIONS = 10_000
# Bytes of JSON, or of a text, in one result: about 8,000 tokens of a model.
RESULT_BYTES = 32_768
# Bytes of a token, of English prose and a usual vocabulary.
TOKEN_BYTES = 4
# Maximum size of one result in tokens: programs read a large document in few calls.
MAX_TOKENS = 1_000_000
# Passages of one result of Query.
MAX_HITS = 100
# Documents of one result of search_documents, and passages that are searched for them.
MAX_FOUND_DOCUMENTS, MAX_SOUGHT_PASSAGES = 100, 4_000
# Points of a map: finding the neighbours of each takes time in proportion to their square.
MAX_POINTS = 10_000
# Chunks before a chunk, and after it.
MAX_NEIGHBOURS = 50
# Writes that one undo names.
MAX_UNDO_NUMBERS = 10_000
# Documents in one call of import_documents.
MAX_IMPORTED_DOCUMENTS = 1_000
# Characters of the name of a symbol.
MAX_NAME_LENGTH = 300
