"""The care of the whole memory: statistics, verification, repair, reembedding, backup, export and import.

Start with `maintenance.Maintenance`. Knows no MCP.
"""
