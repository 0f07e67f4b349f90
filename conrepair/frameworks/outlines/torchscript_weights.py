"""Numbers in a TorchScript archive by their type, read from its pickle without making any object of it."""

from __future__ import annotations

import io
import pickle
from collections import Counter
from typing import Any

from conrepair.runtime.archive import Archive

__all__ = ["weights_of"]

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


def weights_of(archive: Archive) -> Counter[str]:
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
