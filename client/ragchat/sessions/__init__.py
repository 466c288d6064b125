"""Past conversations: stored, searched, exported.

Start with `store`.
"""
