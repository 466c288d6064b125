"""`ragchat run`: scripted sessions with expectations.

`script` reads the file, `runner` runs it.
"""
