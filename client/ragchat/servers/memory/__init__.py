"""The server of the memory: a process of our own, or one that runs already.

Start with `server`: `open_memory` gives a client of the memory, whose connection is a `MemoryServer`.
`process` has the command and environment of our own process, `running` finds a server that runs already.
`repository` chooses the memory of a whole repository.
"""
