"""Web pages: loading the documents at addresses that the user has named. Knows no memory.

`fetching` makes the requests; `ragmemory.files.pages` stores what they return.
"""
