"""``python -m edgegym``: the command line."""

import sys

from edgegym.cli import main

if __name__ == "__main__":
    sys.exit(main())
