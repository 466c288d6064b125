"""`ragchat web`: the conversation, its sources and the library on a page, on this machine.

A local HTTP server over the same parts as the terminal: `Conversation`, the memory client, the sessions, the
other servers. It adds no behaviour of its own. Start reading in `app`, the table of routes; `access` lets
requests in, and `static/` is the page. May import everything of the client but `ui/`, which is the terminal.
"""
