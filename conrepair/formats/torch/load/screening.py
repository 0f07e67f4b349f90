"""PyTorch: exported programs, TorchScript and saved tensors; pickles are restricted to tensors by PyTorch itself."""

from __future__ import annotations

import importlib
import io
import pickletools
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conrepair.formats.models.admission import UnusualContent, shown
from conrepair.formats.models.detect import container
from conrepair.formats.models.model import Model
from conrepair.formats.torch.load.exported_screening import CALLED_BY_NAME, OF_NETWORK, findings_of_program, reach_of
from conrepair.ground.runtime.files.archive import Archive, is_archive, opened_archive

_OF_SCRIPT = re.compile(
    r"(data|constants|traced_inputs)(\.pkl|/\w+)|code/.+\.(py|debug_pkl)|extra/.+|version|byteorder|\.data/\w+"
    r"|\.format_version|\.storage_alignment"
)
_CLASSES = re.compile(r"\btorch\s*\.\s*classes\s*\.\s*(?!quantized\b|xnnpack\b|mkldnn\b|rnn\b|sparse\b)(\w+)")
_LOOKED_UP = re.compile(r"\bgetattr\b(?!\(\w+, \"\w+\"\))")  # by a name that's put together or has escapes
_FUNCTION = re.compile(r"\bdef\b")
_CLASS = re.compile(r"^class (\w+)\(", re.MULTILINE)
_NODE = re.compile(r"\b(\w+)::(\w+)[(\[]")
_NEEDED = re.compile(r"(^|/)(version|byteorder|constants\.pkl|constants/\w+)$")
_ALL_READ = "Unpickler expected 1 element on the stack"  # is said last, when all classes have been compiled
_OWN = "__torch__"  # all that code defines is in a module of this name
_PYTHON = re.compile(r"(?:^|[=(,\[]\s*)\^(\w+)\s*\(", re.MULTILINE)


def seal(model: Model, place: Path) -> Iterator[UnusualContent]:
    """See `conrepair.formats.models.admission.admitted`.

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
    texts = {name: archive.read_text(name) for name in names if name.endswith(".py")}
    if any(CALLED_BY_NAME.search(text) or _LOOKED_UP.search(text) for text in texts.values()):
        yield from _of_operators(archive, texts)
    for text in texts.values():
        for found in OF_NETWORK.finditer(text):
            yield UnusualContent(f"operators of {found[1]}, which use the network", confinable=True)
        for found in _CLASSES.finditer(text):
            yield UnusualContent(f"objects of the class library {shown(found[1])}", confinable=True)
        for found in _PYTHON.finditer(text):
            yield UnusualContent(f"the Python function {shown(found[1])}", confinable=True)


def _of_operators(archive: Archive, texts: dict[str, str]) -> Iterator[UnusualContent]:
    """The operators that code calls, as PyTorch's compiler resolves them: a layer may have an operator's name.

    Nothing of it runs: what the archive is compiled with has classes and no objects.
    """
    graphs = _graphs(archive, texts)
    if len(graphs) < sum(len(_FUNCTION.findall(text)) for text in texts.values()):
        yield UnusualContent(
            "code that names operators which open files, and that PyTorch doesn't compile", confinable=True
        )
    for space, name in sorted({found for graph in graphs for found in _NODE.findall(graph)}):
        if reach := reach_of(f"torch.ops.{space}.{name}"):
            yield UnusualContent(f"the operator {space}::{name}, which {reach}", confinable=True)


def _graphs(archive: Archive, texts: dict[str, str]) -> list[str]:
    """The graphs of all functions and methods; none where the constants might hold objects, which would be made."""
    torch: Any = importlib.import_module("torch")
    constants = [name for name in archive.sizes if name.endswith("constants.pkl")]
    if any(_makes_objects(archive.read(name)) for name in constants):
        return []
    classes = [
        f"c{path.partition('code/')[2].removesuffix('.py').replace('/', '.')}\n{name}\n"
        for path, text in texts.items()
        for name in _CLASS.findall(text)
    ]
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as copy:
        for name in archive.sizes:
            if name in texts or _NEEDED.search(name):
                copy.writestr(name, archive.read(name))
            elif name.endswith("data.pkl"):
                copy.writestr(name, b"\x80\x02" + "".join(classes).encode() + b"N.")
    unit = torch._C.CompilationUnit()
    graphs: dict[str, str] = {}
    try:
        try:
            torch._C.import_ir_module_from_buffer(unit, held.getvalue(), None, {}, False)
        except RuntimeError as error:
            if not str(error).startswith(_ALL_READ):
                raise
        while found := [each for each in unit.get_functions() if each.qualified_name not in graphs]:
            graphs |= {each.qualified_name: str(each.graph) for each in found}  # compiles it, and imports others
    except RuntimeError:
        return []
    return list(graphs.values())


def _makes_objects(content: bytes) -> bool:
    """Whether a pickle names classes that code defines, or isn't one."""
    try:
        return any(str(told).startswith(_OWN) for _, told, _ in pickletools.genops(content))
    except ValueError:
        return True
