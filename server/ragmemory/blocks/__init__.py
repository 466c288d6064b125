"""Documents as trees of blocks: headings, paragraphs, lists, items, tables, code and quotes.

Start with `tree`, which is built on the blocks that chunking uses. `labels` numbers and finds blocks,
`outline` keeps their ids stable from one text to the next, `editing` changes a text block by block: these are
pure, and `view` joins them for one document. `library` applies them to the documents in memory. Knows no
MCP.
"""
