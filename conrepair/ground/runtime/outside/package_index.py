"""The package index that pip is configured for: its address, certificate and proxy are honoured."""

from __future__ import annotations

import ast
import contextlib
import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from conrepair.ground.runtime.errors import FetchError, MissingLibraryError
from conrepair.ground.runtime.libraries import missing_text

_SECONDS = 30


@dataclass(frozen=True)
class Index:
    """An index that is asked.

    Attributes:
        session: Of `requests`.
        client: Of `pypi_simple`.
    """

    session: Any
    client: Any

    def files(self, project: str) -> list[Any]:
        """The files of a package, as `pypi_simple` has them.

        Args:
            project: Its name.
        """
        return list(self.client.get_project_page(project, timeout=_SECONDS).packages)


@contextlib.contextmanager
def package_index(wanted: str, advice: str = "") -> Iterator[Index]:
    """Ask the index, until the block is left.

    Args:
        wanted: What of it, for people.
        advice: What else can be done where it can't be had.

    Raises:
        MissingLibraryError: if what asks isn't installed.
        FetchError: if the index can't be reached, or has no such package.
    """
    try:
        import pypi_simple
        import requests
    except ImportError as error:
        raise MissingLibraryError(missing_text("pypi_simple")) from error
    try:
        with requests.Session() as session:
            settings = _pip_settings()
            session.verify = settings.get("cert") or True
            if proxy := settings.get("proxy"):
                session.proxies = {"http": proxy, "https": proxy}
            index = settings.get("index-url", pypi_simple.PYPI_SIMPLE_ENDPOINT)
            with pypi_simple.PyPISimple(index, session=session) as client:
                yield Index(session, client)
    except (
        requests.RequestException,
        pypi_simple.NoSuchProjectError,
        pypi_simple.UnsupportedContentTypeError,
    ) as error:
        raise FetchError(
            f"{wanted} could not be fetched: {_short(error)}. Check the network and pip's settings "
            f"(`pip config list`){advice}."
        ) from error


def releases_of(distribution: str) -> list[str]:
    """The releases of a library that have a wheel for this Python and machine, the oldest first.

    Args:
        distribution: The library, as package indices call it.

    Raises:
        FetchError: if the index can't say.
    """
    with package_index(f"the list of {distribution}'s releases") as index:
        from packaging.tags import sys_tags
        from packaging.utils import parse_wheel_filename
        from packaging.version import Version

        tags, found = frozenset(sys_tags()), set[Version]()
        for file in index.files(distribution):
            if not file.filename.endswith(".whl") or file.is_yanked:
                continue
            with contextlib.suppress(ValueError):  # names of old files follow no rule
                _, version, _, fits = parse_wheel_filename(file.filename)
                if not version.is_prerelease and not tags.isdisjoint(fits):
                    found.add(version)
    return [str(version) for version in sorted(found)]


def _short(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    return text if len(text) < 300 else text[:300] + "..."


@functools.cache
def _pip_settings() -> dict[str, str]:
    """Pip's index, certificate and proxy, from its files and environment, the latter winning."""
    listing = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    settings: dict[str, str] = {}
    for line in sorted(listing.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        key = name.rpartition(".")[2]
        if key in {"index-url", "cert", "proxy"}:
            settings[key] = str(ast.literal_eval(value))
    return settings
