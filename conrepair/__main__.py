"""`python -m conrepair`."""

import sys

from conrepair.cli import main

if __name__ == "__main__":
    sys.exit(main())
