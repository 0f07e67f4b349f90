"""PyTorch: the calls that an archive's graph or code makes, and operators that nobody here has registered."""

from __future__ import annotations

import io
import json
import pickle
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.outline import Outline, lacking
from conrepair.ground.runtime.files.archive import Archive, opened_archive

# Numbers in a TorchScript archive by their type, read from its pickle without making any object of it.

_TYPES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool", "QInt8Storage": "qint8", "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
}  # fmt: skip
_LARGEST = 1 << 28


class _Thing:
    """Whatever the pickle names: it's nothing, does nothing, and takes everything."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __setstate__(self, _: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> _Thing:
        return self

    def __setitem__(self, _: Any, __: Any) -> None:
        pass


class _Reader(pickle.Unpickler):
    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))
        self.sizes: dict[str, tuple[str, int]] = {}

    def find_class(self, _: str, name: str) -> Any:
        return _TYPES.get(name) or type("_Other", (_Thing,), {})

    def persistent_load(self, told: Any) -> Any:
        _, kind, key, _, size = told
        self.sizes[str(key)] = str(kind), int(size)
        return _Thing()


def _weights_of(archive: Archive) -> Counter[str]:
    """Numbers by dtype.

    Args:
        archive: Of TorchScript.

    Raises:
        Exception: whatever a damaged pickle leads to.
    """
    found: Counter[str] = Counter()
    for name, size in archive.sizes.items():
        if name.endswith("/data.pkl") and size <= _LARGEST:
            reader = _Reader(archive.read(name))
            reader.load()
            for kind, numbers in reader.sizes.values():
                found[kind] += numbers
    return found


_PROGRAM = "models/model.json"  # of torch.export
_CALL = re.compile(r"\b(?:ops\.(?P<space>\w+)|torch)\.(?P<name>\w+)\(")  # in TorchScript's code


def outline(model: Model) -> Outline:
    """See `conrepair.formats.models.outline.outline`."""
    with opened_archive(Path(model.path)) as archive:
        archive.check()
        names = list(archive.sizes)
        weights: Counter[str] = Counter()
        program = next((name for name in names if name.endswith(_PROGRAM)), None)
        if program is not None:
            calls = _of_program(json.loads(archive.read_text(program)))
        else:
            code = [archive.read_text(name) for name in names if "/code/" in f"/{name}" and name.endswith(".py")]
            calls = [f"{call['space'] or 'aten'}.{call['name']}" for text in code for call in _CALL.finditer(text)]
            weights = _weights_of(archive)
    if not calls:
        raise ValueError("there's no graph and no code in it")
    unknown = [name for name in calls if not _is_known(name)]
    words = "the operators {} aren't PyTorch's, and their library isn't here; export the model without them"
    kind = "TorchScript" if program is None else "exported PyTorch program"
    operators = (name.removeprefix("aten.") for name in calls)
    description = Description.counted(operators, weights, format=kind, inputs=(), outputs=())
    return Outline(description, lacking(unknown, words))


def _of_program(value: Mapping[str, Any]) -> list[str]:
    """Operators of an exported program, as space.name."""
    targets = [str(node["target"]) for node in value["graph_module"]["graph"]["nodes"]]
    return [".".join(target.removeprefix("torch.ops.").split(".")[:2]) for target in targets]


def _is_known(name: str) -> bool:
    """Whether an operator is registered; names that aren't operators (`_operator.getitem`) are Python's."""
    space, _, operator = name.partition(".")
    return space in {"aten", "prim", "prims", "higher_order", "_operator"} or hasattr(
        getattr(torch.ops, space), operator
    )
