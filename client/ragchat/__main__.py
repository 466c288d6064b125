"""`python -m ragchat`."""

import sys

from ragchat.cli import main

sys.exit(main())
