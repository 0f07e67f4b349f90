"""Measurements; each module is run with `python -m benchmarks.NAME`."""

import os

os.environ["CONREPAIR_CACHE"] = ""  # what is measured is work, and not what an earlier command has kept
