"""PyTorch: exported programs, TorchScript and saved tensors; pickles are restricted to tensors by PyTorch itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from conrepair.frameworks.detect import container
from conrepair.frameworks.model import Model
from conrepair.frameworks.screening.admission import UnusualContent, shown
from conrepair.frameworks.screening.exported import findings_of_program
from conrepair.frameworks.screening.torch_operators import CALLED_BY_NAME, OF_NETWORK
from conrepair.runtime.archive import Archive, is_archive, opened_archive

__all__ = ["seal"]

_OF_SCRIPT = re.compile(
    r"(data|constants|traced_inputs)(\.pkl|/\w+)|code/.+\.(py|debug_pkl)|extra/.+|version|byteorder|\.data/\w+"
    r"|\.format_version|\.storage_alignment"
)
_CLASSES = re.compile(r"\btorch\s*\.\s*classes\s*\.\s*(?!quantized\b|xnnpack\b|mkldnn\b|rnn\b|sparse\b)(\w+)")
_PYTHON = re.compile(r"(?:^|[=(,\[]\s*)\^(\w+)\s*\(", re.MULTILINE)


def seal(model: Model, place: Path) -> Iterator[UnusualContent]:
    """See `conrepair.frameworks.screening.admission.admitted`.

    What isn't an archive is a pickle: PyTorch reads it by its own restricted reader, and there's no copy of it.
    """
    path = Path(model.path)
    if not is_archive(path):
        return
    with opened_archive(path) as archive:
        root = _root(archive)
        if model.factory is None and container(path) == ".pt2":
            kept = yield from findings_of_program(archive, root)
        else:  # without code it's a state dict, and all of its members have such names
            kept = {name: None for name in archive.sizes if _OF_SCRIPT.fullmatch(name.removeprefix(root))}
            yield from _of_script(archive, [name for name in kept if name.removeprefix(root).startswith("code/")])
        archive.copy(place, kept)


def _root(archive: Archive) -> str:
    """The folder that everything is in, with its slash; "" where there's none: PyTorch takes the first member's."""
    roots = {name.partition("/")[0] for name in archive.sizes if "/" in name}
    if len(roots) != 1 or not all("/" in name for name in archive.sizes):
        return ""
    return f"{roots.pop()}/"


def _of_script(archive: Archive, names: list[str]) -> Iterator[UnusualContent]:
    for name in names:
        if not name.endswith(".py"):
            continue
        text = archive.read_text(name)
        for found in CALLED_BY_NAME.finditer(text):
            yield UnusualContent(f"the operator {found[0]}, which opens files", confinable=True)
        for found in OF_NETWORK.finditer(text):
            yield UnusualContent(f"operators of {found[1]}, which use the network", confinable=True)
        for found in _CLASSES.finditer(text):
            yield UnusualContent(f"objects of the class library {shown(found[1])}", confinable=True)
        for found in _PYTHON.finditer(text):
            yield UnusualContent(f"the Python function {shown(found[1])}", confinable=True)
