"""ONNX files whose programs can be fed: NumPy's own files have no bfloat16."""

from __future__ import annotations

from pathlib import Path

from conrepair.frameworks.identity import model_sha256
from conrepair.frameworks.model import Model
from conrepair.frameworks.onnx_files.border import is_plain_border, plain_border
from conrepair.frameworks.proto_file import read_proto

__all__ = ["plainly_fed"]


def plainly_fed(model: Model, folder: Path) -> Model:
    """A file that casts inputs and outputs of types that NumPy has none of, as ONNX Runtime is fed them here, too.

    Args:
        model: An ONNX file, with its weights inside where it isn't taken as it is.
        folder: For another file.

    Returns:
        The model itself, where NumPy has all its types.
    """
    proto = read_proto(Path(model.path))
    if is_plain_border(proto):
        return model
    plain_border(proto)
    path = folder / f"{model.sha256[:12]}.plain.onnx"
    path.write_bytes(proto.SerializeToString())
    return Model(model.framework, str(path), model_sha256(path))
