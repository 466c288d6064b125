"""MCP in five revisions, as server and as client, over stdio and HTTP.

Start with `protocol`, which is pure; `server` and `client` are the two ends; `stdio` and `http` are the
shells around them; `legacy` holds what only older revisions need. Imports neither of the two programs.
"""
