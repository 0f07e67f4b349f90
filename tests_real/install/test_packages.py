"""Installed as others install it: the wheel that's built from the source distribution, in environments of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from two_files import check_verbs, run

import conrepair
from conrepair.ground.runtime.libraries import EXTRAS

pytestmark = [pytest.mark.network, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
CORE = [Requirement(line) for line in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]]
_MEGABYTES = 400


def call(*command: str | Path, folder: Path) -> str:
    """Run what builds and installs; its own words are the failure's."""
    result = run([str(command[0])], [str(part) for part in command[1:]], folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made from the source distribution; `tests` and `benchmarks` aren't in either."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT / "conrepair", folder / "tree" / "conrepair", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "tree")
    call(sys.executable, "-m", "venv", folder / "builder", folder=folder)
    python = folder / "builder" / "bin" / "python"
    call(python, "-m", "pip", "install", "-q", "setuptools>=77", folder=folder)
    code = "import setuptools.build_meta as backend; print(backend.build_sdist('..'))"
    call(python, "-c", code, folder=folder / "tree")
    archive = next(folder.glob("conrepair-*.tar.gz"))
    call(python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, archive, folder=folder)
    return next(folder.glob("conrepair-*.whl"))


def install(wheel: Path, folder: Path, *, python: str = sys.executable, constraints: str = "") -> Path:
    """Install the wheel with the core alone into an empty environment; returns the environment."""
    environment = folder / "environment"
    call(python, "-m", "venv", environment, folder=folder)
    limits = folder / "constraints.txt"
    limits.write_text(constraints)
    pip = [environment / "bin" / "python", "-m", "pip", "install", "-q", "--no-compile", "--only-binary", ":all:"]
    call(*pip, "-c", limits, wheel, folder=folder)
    return environment


def versions(environment: Path) -> dict[str, str]:
    lines = call(environment / "bin" / "python", "-m", "pip", "list", "--format", "freeze", folder=environment)
    return dict(line.lower().replace("_", "-").split("==") for line in lines.splitlines())


def check(environment: Path, folder: Path) -> None:
    """The verbs work, from the environment's own package, without any library of an extra that nothing else needs."""
    python = environment / "bin" / "python"
    where = call(python, "-c", "import conrepair; print(conrepair.__version__, conrepair.__file__)", folder=folder)
    assert where.split()[0] == conrepair.__version__
    assert Path(where.split()[1]).is_relative_to(environment)
    own = {package for extra in EXTRAS for package in extra.libraries.values()} - {"flatbuffers", "sympy"}
    assert not own & set(versions(environment))
    work = folder / "work"
    work.mkdir()
    check_verbs([str(environment / "bin" / "conrepair")], work)


def test_what_is_in_the_distributions(built: Path) -> None:
    data = {
        "conrepair/application/config/schema.json",
        "conrepair/environments/litert-torch.txt",
        "conrepair/py.typed",
        "conrepair/application/report/result.schema.json",
    }
    with zipfile.ZipFile(built) as wheel:
        names = set(wheel.namelist())
        entries = next(wheel.read(name).decode() for name in names if name.endswith(".dist-info/entry_points.txt"))
    assert "[pytest11]\nconrepair = conrepair.pytest_plugin" in entries
    with tarfile.open(next(built.parent.glob("*.tar.gz"))) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "conrepair").rglob("*.py")}
    assert data | modules <= names
    assert data | modules <= sources
    assert not {name for name in names if not name.startswith(("conrepair/", "conrepair-"))}


def test_the_core_alone(built: Path, tmp_path: Path) -> None:
    environment = install(built, tmp_path)
    files = [file for file in environment.rglob("*") if file.is_file() and not file.is_symlink()]
    used = sum(file.stat().st_blocks * 512 for file in files if file.suffix != ".pyc") / 1e6
    assert used < _MEGABYTES
    check(environment, tmp_path)


def test_the_lowest_versions_of_the_core(built: Path, tmp_path: Path) -> None:
    lowest = {
        requirement.name: next(item.version for item in requirement.specifier if item.operator == ">=")
        for requirement in CORE
    }
    environment = install(built, tmp_path, constraints="".join(f"{name}=={low}\n" for name, low in lowest.items()))
    installed = versions(environment)
    for name, low in lowest.items():
        assert re.fullmatch(rf"{re.escape(low)}(\.0)*", installed[name.lower().replace("_", "-")]), name
    check(environment, tmp_path)


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_another_python(version: str, built: Path, tmp_path: Path) -> None:
    python = find_python(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    check(install(built, tmp_path, python=python), tmp_path)


def find_python(version: str) -> str | None:
    """An interpreter of that version that can make environments: on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python{version}"))]
    code = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    for python in found:
        if python is None:
            continue
        asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        if asked.returncode == 0 and asked.stdout.strip() == version:
            return str(python)
    return None
