"""`python -m conrepair`."""

import os
import sys

_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 (pathlib isn't loaded yet)
try:
    _HERE = os.getcwd()  # noqa: PTH109
except OSError:  # it was removed, which is said once there's somebody to say it
    _HERE = ""
if not sys.flags.safe_path and sys.path[0] == _HERE != _HOME:
    # Python puts the current folder first, where a file that somebody sent may be called like a library.
    # What PYTHONPATH names is there once more.
    del sys.path[0]

from conrepair.application.cli import main  # noqa: E402 (behind that)

if __name__ == "__main__":
    sys.exit(main())
