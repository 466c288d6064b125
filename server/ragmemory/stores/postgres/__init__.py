"""The engine of a memory in PostgreSQL, which any number of processes and hosts may use at once.

`database` opens it and orders its commits; `pool` keeps its connections; `connection` adapts psycopg;
`dialect` has the SQL that only PostgreSQL accepts, and `words` its full text.
"""
