"""Formats of files that are not plain text, one module each: bytes to Markdown with its places.

Every module has `read(path, data)`, which returns a `Read` or raises NotText. Start with `reader`, which
chooses the module. They run in a worker process (`ragmemory.files.parsing`): a parser may hang or crash.
"""
