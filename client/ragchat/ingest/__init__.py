"""Files and texts into memory. The memory server reads the files; this follows its jobs.

Start with `loading`. `report` holds the outcome. `uploading` sends the texts to a server on another machine.
"""
