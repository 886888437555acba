"""``python -m agents``."""

import sys

from agents.app import main

if __name__ == "__main__":
    sys.exit(main())
