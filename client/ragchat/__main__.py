"""`python -m ragchat`."""

import sys

from ragchat.cli import main

if __name__ == "__main__":  # Worker processes import this module.
    sys.exit(main())
