"""Documents as trees of blocks: headings, paragraphs, lists, items, tables, code and quotes.

Start with `tree`, which is built on the blocks that chunking uses. `labels` numbers and finds blocks,
`outline` keeps their ids stable across edits, `editing` changes a text block by block, and `block_view`
combines them for one document: all pure. `editor` applies them to the documents in memory. Knows no MCP.
"""
