"""For pytest: `--conrepair-reports FOLDER` keeps the localization of every assertion of ours that fails."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

REPORTS = "CONREPAIR_REPORTS"
"""The environment variable that says the same, for other runners than pytest."""


def pytest_addoption(parser: Any) -> None:
    """Declare the option.

    Args:
        parser: pytest's (a `pytest.Parser`; pytest isn't among what we need).
    """
    parser.getgroup("conrepair").addoption(
        "--conrepair-reports",
        metavar="FOLDER",
        help="Keep the localization of each failed conrepair.testing.assert_equivalent in a folder of its test's "
        f"name below FOLDER (default: the folder in the environment variable {REPORTS}, else nothing is kept).",
    )


def pytest_configure(config: Any) -> None:
    """Hand the folder to the assertions, in the processes of pytest-xdist, too.

    Args:
        config: pytest's (a `pytest.Config`).
    """
    folder = config.getoption("--conrepair-reports")
    if folder is not None:
        os.environ[REPORTS] = str(Path(folder).absolute())
