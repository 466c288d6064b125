"""What the command line and the page both show of the set-up: settings, files, the block for another host.

Neither imports the other. `shown` has the settings and files, `host_block` the block.
"""
