"""Every default value and prompt text, the loader that layers settings over them, and what both programs
need to read files safely.

Start with `settings`; `home` says where files are, `redaction` keeps secrets out of logs. Imports none of the
other packages.
"""
