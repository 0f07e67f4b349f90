"""`python3 main.py [CONFIG]`: run the audit that a configuration describes (default: config.json here)."""

import importlib.util
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = HERE / ".venv" / "bin" / "python"


def main() -> int:
    """Run with the interpreter that has the libraries: this one, or the one that `make setup` made."""
    if importlib.util.find_spec("pydantic") is None or importlib.util.find_spec("rich") is None:
        if not ENVIRONMENT.exists():
            sys.stderr.write("conrepair: its libraries aren't installed. Run `make setup` (or `make run`) first.\n")
            return 2
        os.execv(ENVIRONMENT, [str(ENVIRONMENT), *sys.argv])  # noqa: S606 (our own environment's Python)
    from conrepair.application.cli import main as run

    os.environ.setdefault("CONREPAIR_ZOO", str(HERE / "datasets"))  # what's fetched lies in the checkout
    sys.argv.insert(1, "run")
    return run(default_config=str(HERE / "config.json"))


if __name__ == "__main__":
    sys.exit(main())
