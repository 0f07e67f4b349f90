"""What others get: the package's description, its addresses, the container, and what a tag releases."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import conrepair

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ADDRESS, TAG = "https://example.org/them/conrepair", f"v{conrepair.__version__}"


def test_what_a_registry_shows() -> None:
    assert "neural network" in PROJECT["description"]
    assert len(PROJECT["description"].split()) < 20
    minors = [line.removeprefix("Programming Language :: Python :: ") for line in PROJECT["classifiers"]]
    assert {"3.11", "3.12", "3.13", "3 :: Only"} <= set(minors)
    assert not [line for line in PROJECT["classifiers"] if line.startswith("License")]  # the expression says it
    assert len(set(PROJECT["keywords"])) == len(PROJECT["keywords"]) > 10


def test_the_version_has_its_changes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\d\S*)", text, re.MULTILINE)[0] == conrepair.__version__


@pytest.fixture
def release() -> Callable[[Path, str, str], str]:
    spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    prepare: Callable[[Path, str, str], str] = module.main
    return prepare


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "conrepair").mkdir()
    for name in ("README.md", "pyproject.toml", "CHANGELOG.md", "conrepair/__init__.py"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_release_has_the_addresses_of_its_repository(release: Callable[..., str], checkout: Path) -> None:
    assert release(checkout, ADDRESS, TAG) == ""
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Homepage"] == ADDRESS
    assert all(url.startswith(ADDRESS) for url in project["urls"].values())
    assert project == PROJECT | {"urls": project["urls"]}  # nothing else of it changed
    text = (checkout / "README.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", prose)
    assert links
    assert all(link.startswith(("https://", "http://", "#")) for _, link in links)
    ours = [(picture, link.removeprefix(f"{ADDRESS}/")) for picture, link in links if link.startswith(ADDRESS)]
    for picture, link in ours:
        kind, tag, path = link.split("/", 2)
        assert (kind, tag) == ("raw" if picture else "blob", TAG)
        assert (ROOT / path.partition("#")[0]).exists()
    assert "already" in release(checkout, ADDRESS, TAG)


@pytest.mark.parametrize(
    ("address", "tag", "said"),
    [
        (ADDRESS, "v9.9.9", "give the same"),
        (ADDRESS, conrepair.__version__, "give the same"),
        ("example.org/x", TAG, "no address"),
        ('https://example.org/a"b', TAG, "no address"),
    ],
)
def test_a_wrong_release_is_refused(
    address: str, tag: str, said: str, release: Callable[..., str], checkout: Path
) -> None:
    before = (checkout / "pyproject.toml").read_bytes()
    assert said in release(checkout, address, tag)
    assert (checkout / "pyproject.toml").read_bytes() == before


def test_a_release_without_its_changes_is_refused(release: Callable[..., str], checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n", encoding="utf-8")
    assert "has no section" in release(checkout, ADDRESS, TAG)


CONTAINERS = [ROOT / "Containerfile", ROOT / "examples" / "crowd.Containerfile"]


def instructions(path: Path) -> list[tuple[str, str]]:
    """Each with its words, lines that go on joined; comments left out."""
    text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


@pytest.mark.parametrize("path", CONTAINERS, ids=lambda path: path.name)
def test_a_container(path: Path) -> None:
    """It isn't built here: what its instructions name is looked for."""
    told = instructions(path)
    verbs = [verb for verb, _ in told]
    assert set(verbs) <= {"FROM", "ARG", "COPY", "RUN", "USER", "ENV", "WORKDIR", "ENTRYPOINT", "CMD"}
    for verb, words in told:
        if verb == "FROM":
            assert re.match(r"python:3\.11-slim", words)
        if verb == "COPY" and "--from" not in words:
            assert all((ROOT / source).exists() for source in words.split()[:-1])
            assert all(
                f"!{source}" in (ROOT / ".containerignore").read_text().split() for source in words.split()[:-1]
            )
        if verb in {"ENTRYPOINT", "CMD"}:
            assert json.loads(words)
        for name in re.findall(r"conrepair\[([\w,]+)\]", words):
            assert set(name.split(",")) <= set(PROJECT["optional-dependencies"])
    last = len(verbs) - 1 - verbs[::-1].index("FROM")
    user = next(words for verb, words in told[last:] if verb == "USER")
    assert f"useradd --create-home {user}" in " ".join(words for verb, words in told[last:] if verb == "RUN")
    assert verbs.index("USER", last) < verbs.index("ENTRYPOINT", last)
    assert max(place for place, verb in enumerate(verbs) if verb == "RUN") < verbs.index("USER", last)


def test_the_container_starts_the_command_and_pins_what_it_installs() -> None:
    told = instructions(CONTAINERS[0])
    assert json.loads(dict(told)["ENTRYPOINT"])[0] in PROJECT["scripts"]
    (install,) = (words for verb, words in told if verb == "RUN" and "pip install" in words)
    assert "--constraint /tmp/constraints.txt" in install
    pattern = shlex.split(install)[1].removeprefix("s/").removesuffix("//")
    pins = re.sub(pattern, "", (ROOT / "requirements.txt").read_text(encoding="utf-8"))
    lines = [line for line in pins.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", line) for line in lines)  # pip refuses extras in constraints
