"""Where a model of the older form comes from: an expression, a file or an address. Nothing is evaluated.

Its paths are relative to the tool's own folder, and written with a slash in front.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.formats.models.formats import BY_SUFFIX
from conrepair.ground.runtime.path_text import fitting_name, path_problem

_LETTERS = 90  # of a name, with a few left for a number


class PathFinder:
    """Finds what a configuration names; files are looked for, never opened.

    Args:
        base: The configuration's folder, which stands for the older tool's.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def path(self, text: str) -> str:
        """A path as our form writes it: relative to the configuration's folder.

        A path that lies nowhere below that folder, but is there as it's written, stays as it is.
        """
        below = posixpath.normpath(text.strip().lstrip("/")) if text.strip("/ ") else "."
        if text.startswith("/") and not _exists(self._base / below) and _exists(Path(text)):
            return posixpath.normpath(text)
        return below

    def first(self, name: str, folders: Sequence[str | None]) -> str:
        """Where a file is: as it's written, or in the first of the folders that has it.

        Args:
            name: Of the file.
            folders: Older paths; None is passed over.

        Returns:
            The path as our form writes it; the name alone where the file is nowhere.
        """
        plain = self.path(name)
        candidates = [plain, *(self.path(f"{folder}/{name}") for folder in folders if folder)]
        return next((path for path in candidates if _exists(self._base / path)), plain)

    def has(self, path: str) -> bool:
        """Whether there is a file or a folder of that path."""
        return _exists(self._base / path)


def model_name(text: str) -> str:
    """A name that our form allows.

    Args:
        text: What it's made of.
    """
    return fitting_name(re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip("._-") or "model", _LETTERS)


class ModelNames:
    """Names of models, of which nobody gets another's."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._numbers: Counter[str] = Counter()

    def new(self, text: str) -> str:
        """A name that our form allows, and that nobody has yet.

        Args:
            text: What it's made of.
        """
        name = result = model_name(text)
        while result in self._taken:
            self._numbers[name] += 1
            result = f"{name}-{self._numbers[name] + 1}"
        self._taken.add(result)
        return result


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long a name, or a folder that may not be looked into
        return False


_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
_TORCHVISION = re.compile(r"(?:torchvision_models|torchvision\.models)\.([a-z]\w*)")
_KERAS = re.compile(r"(?:tensorflow\.|tf\.)?keras\.applications\.(?:[a-z]\w*\.)*([A-Z]\w*)")
_KERAS_MODULE = re.compile(r"(?:tensorflow\.|tf\.)?keras\.applications(?:\.[a-z]\w*)*")
_ZOO = frozenset({"efficientnet_lite0", "efficientnet_lite0_uint8", "mobilenet_v2"})
_ZOO_MOBILENET = (1, 3, 224, 224)


class CannotDoError(Exception):
    """What is asked for isn't done; the message says why and what to do. It becomes an entry of the account."""


@dataclass(frozen=True)
class LegacyOrigin:
    """A model's origin in our form.

    Attributes:
        framework: Its format.
        fields: Keys of our model: zoo, path, or factory with kwargs and weights.
        words: For the account.
    """

    framework: str
    fields: Mapping[str, Any] = field(hash=False)
    words: str = field(compare=False)

    @property
    def hides_inputs(self) -> bool:
        """Whether the model doesn't say what its inputs are, so that they must be declared."""
        if "factory" in self.fields:
            return self.framework == "torch"
        return posixpath.splitext(self.fields.get("path", ""))[1] in {".pt", ".pth", ".ts"}


def origin_of(
    text: str,
    paths: PathFinder,
    folders: Sequence[str | None] = (),
    *,
    alias: str | None = None,
    shape: Sequence[Any] | None = None,
) -> LegacyOrigin:
    """Where a model comes from.

    Args:
        text: An expression, a file, an address, or a name of the zoo.
        paths: Finds files.
        folders: Older paths of folders where a file may be.
        alias: The file name that a download was stored under.
        shape: Of the input.

    Raises:
        CannotDoError: if it can't be had without evaluating an expression or loading from an address, or could be
            nowhere.
    """
    if problem := path_problem(text):
        raise CannotDoError(problem)
    if re.match(r"[a-z]+://", text, re.IGNORECASE):
        return _from_address(text, paths, folders, alias)
    if text in _ZOO:
        framework = "tflite" if text.endswith("uint8") else "torch"
        return LegacyOrigin(framework, {"zoo": text}, f"the zoo's {text}")
    suffix = posixpath.splitext(text)[1].lower()
    if suffix in BY_SUFFIX or "/" in text:
        path = paths.first(text, folders)
        return LegacyOrigin(BY_SUFFIX.get(suffix, "tensorflow"), {"path": path}, f"the file {path}")
    return _from_expression(text, shape)


def _from_expression(text: str, shape: Sequence[Any] | None) -> LegacyOrigin:
    if found := _TORCHVISION.fullmatch(text):
        name = found.group(1)
        if name == "mobilenet_v2" and tuple(shape or _ZOO_MOBILENET) == _ZOO_MOBILENET:
            return LegacyOrigin(
                "torch", {"zoo": name}, "the zoo's mobilenet_v2, torchvision's with its ImageNet weights"
            )
        fields = {"factory": f"torchvision.models:{name}", "kwargs": {"weights": "IMAGENET1K_V1"}}
        return LegacyOrigin("torch", fields, f"torchvision.models:{name} with its ImageNet weights")
    if found := _KERAS.fullmatch(text):
        fields = {"factory": f"keras.applications:{found.group(1)}", "kwargs": {"weights": "imagenet"}}
        return LegacyOrigin("keras", fields, f"keras.applications:{found.group(1)} with its ImageNet weights")
    if _KERAS_MODULE.fullmatch(text):
        raise CannotDoError(
            f"'{text}' is a module of Keras, not a network. Name the function in it, as in "
            "keras.applications.MobileNetV2"
        )
    if _DOTTED.fullmatch(text):
        raise CannotDoError(
            f"'{text}' is in no library that is known here (torchvision_models.NAME, keras.applications.NAME). "
            'In the new form name what builds the network: "factory": "package.module:function"'
        )
    raise CannotDoError(
        f"'{text}' is a Python expression, and expressions aren't evaluated: they could run anything. In the new "
        'form give "factory": "package.module:function" with "kwargs", or save the model and give its "path"'
    )


def _from_address(text: str, paths: PathFinder, folders: Sequence[str | None], alias: str | None) -> LegacyOrigin:
    """The file that was downloaded from an address earlier, if it's here."""
    for name in (alias, posixpath.basename(text.split("?")[0])):
        suffix = posixpath.splitext(name or "")[1].lower()
        if not name or suffix not in BY_SUFFIX:
            continue
        path = paths.first(name, folders)
        if paths.has(path):
            return LegacyOrigin(BY_SUFFIX[suffix], {"path": path}, f"the file {path}, downloaded earlier")
    raise CannotDoError(
        f"models aren't downloaded from addresses ({text}). Download it yourself, and put it beside this file as "
        f'{alias or posixpath.basename(text)}, or give its "path" in the new form'
    )
