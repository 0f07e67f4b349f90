"""The pins: those that are installed, and for every Python 3.11."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+)$", re.MULTILINE)
PINS = [
    pin for name in ("requirements.txt", "requirements-dev.txt") for pin in PIN.findall((ROOT / name).read_text())
]


@pytest.mark.parametrize(("name", "version"), PINS)
def test_a_pin(name: str, version: str) -> None:
    installed = distribution(name)
    assert installed.version.partition("+")[0] == version
    assert SpecifierSet(installed.metadata["Requires-Python"] or "").contains("3.11.0")
