"""Whether a model's file may be loaded here: what it holds, what this process is kept from, what the user says."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from conrepair.formats.models.detect import container
from conrepair.formats.models.formats import FORMATS
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.archive import ArchiveError
from conrepair.ground.runtime.processes.confinement import held


def how_to_trust(key: str, python: str = "") -> str:
    """What a person does who trusts a file.

    Args:
        key: Of a configuration.
        python: What is said from Python.
    """
    from_python = f", {python} from Python" if python else ""
    return (
        "If it's yours, or from somebody whose programs you would run, say so: --trust on the command line, "
        f"{key} in a configuration{from_python}"
    )


HOW_TO_TRUST = how_to_trust("`trust: true` of that model", "trust=True")
_MOST = 3


@dataclass(frozen=True)
class UnusualContent:
    """Something that no ordinary file of its format has.

    Attributes:
        what: In words.
        confinable: Whether it does nothing beyond what a confined process is kept from. Otherwise it's code where
            the format has none.
    """

    what: str
    confinable: bool = False


@contextlib.contextmanager
def admitted(model: Model) -> Iterator[Path]:
    """Look through a file, and give its library a copy of what was looked through; nothing of it is run.

    The file is read once, by a reader of ours (`conrepair.formats.{name}.load.screening`), and what's loaded is what
    that reader saw: a member or a field that it doesn't know isn't in the copy, and where a library might see
    something else the file isn't loaded.

    Args:
        model: Of any framework.

    Yields:
        What to load: the copy, which is gone behind the block; of a trusted model, and of a format that can't hold
        code, the file itself.

    Raises:
        ModelLoadError: if it isn't trusted, and can't be looked through, or holds what this process isn't kept from.
    """
    form = FORMATS[model.framework]
    if model.trust or not form.holds_code:
        yield Path(model.path)
        return
    with tempfile.TemporaryDirectory(prefix="conrepair-") as folder:
        place = Path(folder) / f"model{container(Path(model.path))}"  # libraries go by suffixes, and mind some names
        try:
            found = list(form.seal(model, place))
        except (ArchiveError, OSError) as error:
            raise ModelLoadError(
                f"{model.path} isn't loaded, as it can't be looked through: {error}. It may be damaged, cut off, or "
                f"of another format; export or copy it again. {HOW_TO_TRUST}."
            ) from error
        _judge(model, found)
        try:
            yield place if place.exists() else Path(model.path)
        except ModelLoadError as error:
            raise ModelLoadError(str(error).replace(str(place), model.path)) from error


def _judge(model: Model, found: list[UnusualContent]) -> None:
    if code := [item.what for item in found if not item.confinable]:
        raise ModelLoadError(
            f"{model.path} isn't loaded: it holds code where its format has none: {_some(code)}. {HOW_TO_TRUST}."
        )
    if found and not held().full:
        raise ModelLoadError(
            f"{model.path} isn't loaded: it may reach beyond the model: {_some(item.what for item in found)}; and "
            f"this process is {held()}. Load it in a worker on a kernel with Landlock and seccomp (`conrepair "
            f"doctor` says what holds here). {HOW_TO_TRUST}."
        )


def shown(path: Path | str) -> str:
    """A name or text out of a file, short."""
    text = str(path)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _some(words: Iterable[str]) -> str:
    different = list(dict.fromkeys(words))
    more = f"; and {len(different) - _MOST} more" if len(different) > _MOST else ""
    return "; ".join(different[:_MOST]) + more
