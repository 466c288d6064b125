"""Past sessions: stored, searched, exported.

Start with `store`; `database` opens the SQLite file.
"""
