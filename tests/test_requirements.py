"""The pins are installed, and for every Python 3.11; the ranges of pyproject.toml hold them."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import conrepair
from conrepair.ground.runtime.libraries import EXTRAS, Extra

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"^([\w.-]+)(?:\[[\w,]+\])?==(\S+)$", re.MULTILINE)
LOCK = dict(PIN.findall((ROOT / "requirements.txt").read_text()))
PINS = [*LOCK.items(), *PIN.findall((ROOT / "requirements-dev.txt").read_text())]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PARTS = [tomllib.loads(path.read_text())["project"] for path in sorted(ROOT.glob("plugins/*/pyproject.toml"))]
OWN = {part["name"]: part for part in PARTS}
OWN_ENVIRONMENTS = {"litert_torch", "onnx2tf"}  # imported by scripts that run there


def requirements(lines: Iterable[str]) -> Iterator[Requirement]:
    """What is asked for, extras and packages of ours replaced by what they ask for."""
    for requirement in map(Requirement, lines):
        if requirement.name == "conrepair":
            for extra in requirement.extras:
                yield from requirements(PROJECT["optional-dependencies"][extra])
        elif requirement.name in OWN:
            yield from requirements(OWN[requirement.name]["dependencies"])
        else:
            yield requirement


def names(lines: Iterable[str]) -> set[str]:
    return {canonicalize_name(requirement.name) for requirement in requirements(lines)}


CORE = names(PROJECT["dependencies"])
# Extras are sets: every worker must collect the same tests in the same order.
RANGES = sorted({*requirements(PROJECT["dependencies"]), *requirements(["conrepair[all]"])}, key=str)


@pytest.mark.parametrize(("name", "version"), PINS)
def test_a_pin(name: str, version: str) -> None:
    installed = distribution(name)
    assert installed.version.partition("+")[0] == version
    assert SpecifierSet(installed.metadata.get("Requires-Python") or "").contains("3.11.0")


@pytest.mark.parametrize("wanted", RANGES, ids=str)
def test_a_range_holds_the_pin_and_has_a_lower_bound(wanted: Requirement) -> None:
    pins = {canonicalize_name(name): version for name, version in LOCK.items()}
    assert wanted.specifier.contains(pins[canonicalize_name(wanted.name)])
    assert any(part.operator == ">=" for part in wanted.specifier)


def test_all_is_every_extra() -> None:
    every = [f"conrepair[{name}]" for name in PROJECT["optional-dependencies"] if name != "all"]
    assert names(every) == names(["conrepair[all]"])
    assert {extra.name for extra in EXTRAS} == set(PROJECT["optional-dependencies"]) - {"all"}


@pytest.mark.parametrize("extra", EXTRAS, ids=lambda extra: extra.name)
def test_the_code_says_of_an_extra_what_is_installed(extra: Extra) -> None:
    libraries = {canonicalize_name(package) for package in extra.libraries.values()}
    assert libraries - OWN.keys() <= names([f"conrepair[{extra.name}]"])
    assert not libraries & CORE


_MODULES = {"iree-base-compiler": "iree"}  # of plug-ins' libraries that are imported by another name


def test_each_library_that_is_imported_is_in_the_core_or_in_an_extra() -> None:
    known = set(sys.stdlib_module_names) | {"conrepair"} | {name.replace("-", "_") for name in OWN} | OWN_ENVIRONMENTS
    known |= {module for extra in EXTRAS for module in extra.libraries}
    of_parts = (Requirement(line).name for part in PARTS for line in part["dependencies"])
    known |= {_MODULES.get(name, name.replace("-", "_")) for name in of_parts}
    packages = packages_distributions()
    unknown = {
        f"{path.relative_to(ROOT)}: {module}"
        for package in (ROOT / "conrepair", *ROOT.glob("plugins/*/conrepair_*"))
        for path in package.rglob("*.py")
        for module in imported(path)
        if module not in known and not CORE & set(map(canonicalize_name, packages.get(module, ())))
    }
    assert not unknown


def imported(path: Path) -> Iterator[str]:
    """Top-level names of all modules that a file imports, wherever it does."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part["name"])
def test_a_package_of_this_repository_has_its_version(part: dict[str, Any]) -> None:
    assert part["version"] == conrepair.__version__
    assert any(
        re.fullmatch(rf"conrepair(\[\w+\])?=={re.escape(part['version'])}", line) for line in part["dependencies"]
    )
