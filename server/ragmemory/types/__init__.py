"""The plain types that the parts of the memory exchange, a module for each. No behaviour, MCP or numpy.

What the tools answer is in `ragcommon.contract`.
"""
