"""How large the small things may be: what the tools' schemas state and the memory enforces."""

from __future__ import annotations

# Characters of a uri, and of a glob that uris are matched with. For each document SQLite takes time in
# proportion to the product of the two lengths; it refuses globs of more than 50,000.
LONGEST_URI = 4_096
# Bytes of a document's metadata, or of a query's filter, as JSON. Every hit carries its document's metadata.
METADATA_BYTES = 65_536
# Levels of lists and objects in metadata or a filter. SQLite's JSON functions and msgspec end at about 1,000.
DEEPEST = 64
# Conditions of a filter, and tags in it. SQLite refuses expressions that are nested 1,000 deep, and a
# condition costs one level.
MOST_CONDITIONS = 100
MOST_TAGS = 100
# Where a page of documents may begin: more than a memory can hold. SQLite's integers end at 2^63.
LAST_OFFSET = 1_000_000_000_000
# Characters of a client's name that the journal keeps with each write.
LONGEST_CLIENT = 200
