"""PyTorch: exported programs and TorchScript; pickles are restricted to tensors by PyTorch itself."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from conrepair.frameworks.model import Model
from conrepair.frameworks.screening.admission import Finding, shown
from conrepair.frameworks.screening.exported import findings_of_program

__all__ = ["findings"]

_OF_FILES = re.compile(r"\b(from_file|read_file|save|write_file)\b")
_ELSEWHERE = re.compile(r"\bops\s*\.\s*(c10d|_c10d_functional|rpc|distributed)\b")
_CLASSES = re.compile(r"\btorch\s*\.\s*classes\s*\.\s*(?!quantized\b|xnnpack\b|mkldnn\b|rnn\b|sparse\b)(\w+)")
_PYTHON = re.compile(r"(?:^|[=(,\[]\s*)\^(\w+)\s*\(", re.MULTILINE)
_END, _END_64 = 22, 22 + 20 + 56  # bytes of what ends an archive, and one whose numbers have 64 bits
_FIRST = b"PK\x03\x04"


def findings(model: Model) -> Iterator[Finding]:
    """See `conrepair.frameworks.screening.admission.admit`."""
    path = Path(model.path)
    if model.factory is not None or not zipfile.is_zipfile(path):
        return
    if not _is_whole(path):
        yield Finding("an archive with something before, behind or beside it, which readers see in different ways")
        return
    try:
        with zipfile.ZipFile(path) as archive:
            yield from findings_of_program(archive) if path.suffix == ".pt2" else _of_script(archive)
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError):
        return  # it's damaged, as PyTorch says


def _is_whole(path: Path) -> bool:
    """Whether an archive begins at the file's first byte and ends with its last one, as PyTorch writes them."""
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        begins = min((info.header_offset for info in archive.infolist()), default=0)
        size = file.seek(0, 2)
        listing = sum(
            46 + len(info.orig_filename.encode()) + len(info.extra) + len(info.comment) for info in archive.infolist()
        )
        file.seek(0)
        first = file.read(4)
    behind = size - archive.start_dir
    return begins == 0 and first == _FIRST and behind <= listing + _END_64 + 32 * len(archive.infolist())


def _of_script(archive: zipfile.ZipFile) -> Iterator[Finding]:
    for info in archive.infolist():
        if "code/" not in info.filename or not info.filename.endswith(".py"):
            continue
        text = archive.read(info).decode("utf-8", errors="replace")
        for found in _OF_FILES.finditer(text):
            yield Finding(f"the operator {found[1]}, which opens files", confinable=True)
        for found in _ELSEWHERE.finditer(text):
            yield Finding(f"operators of {found[1]}, which use the network", confinable=True)
        for found in _CLASSES.finditer(text):
            yield Finding(f"objects of the class library {shown(found[1])}", confinable=True)
        for found in _PYTHON.finditer(text):
            yield Finding(f"the Python function {shown(found[1])}", confinable=True)
