"""The user's files, which both programs read: only regular ones, their text, and their URIs.

`safe_open` reads the bytes, `decoding` makes text of them, `uris` has the path in a URI. `folder` reaches
files without following links, `writing` replaces them.
"""
