"""File formats, one module each: bytes to Markdown with places.

Every module has `read(path, data)`, which returns a `FileText` or raises NotText. Start with `detection`,
which chooses the module. They run in a worker process (`ragmemory.files.parsing`), since a parser may hang
or crash.
"""
