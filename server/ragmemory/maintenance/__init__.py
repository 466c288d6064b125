"""The care of the whole memory: statistics, verification, repair, reembedding, backup, export and import.

Start with `maintenance.Maintenance`. `copying` copies a memory to another file or database. Knows no MCP.
"""
