"""`python -m ragmemory` is the command `ragmemory`."""

import sys

from ragmemory.cli import main

if __name__ == "__main__":
    sys.exit(main())
