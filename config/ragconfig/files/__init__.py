"""The user's files, which both programs read: only regular ones, their text, and their URIs.

`regular` reads the bytes, `decoding` makes text of them, `uris` has the path in a URI.
"""
