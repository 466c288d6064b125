"""The arguments of the command line, a module for each group of commands.

Start with `parser`; `table` joins the groups. The commands themselves are in `ragchat.commands`, and are not
imported here.
"""
