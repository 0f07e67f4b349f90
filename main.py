"""`python3 main.py [CONFIG]`: run the audit that a configuration describes (default: config.json here)."""

import sys
from pathlib import Path

from conrepair.cli import main

if __name__ == "__main__":
    arguments = sys.argv[1:] or [str(Path(__file__).with_name("config.json"))]
    sys.exit(main(["run", *arguments]))
