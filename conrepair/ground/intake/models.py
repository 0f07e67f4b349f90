"""A model that somebody has in Python, as a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.data.tensors import read_tensors
from conrepair.ground.intake.arguments import path as argument_path
from conrepair.ground.intake.arguments import refused
from conrepair.ground.intake.recorded import recorded_file
from conrepair.ground.runtime.errors import ModelLoadError, UsageError
from conrepair.ground.runtime.path_text import model_path

_BATCH = 2
_KNOWN = (
    "a path, a torch.nn.Module, a torch.export.ExportedProgram, a TorchScript module, a keras.Model, an "
    "onnx.ModelProto, an onnx_ir.Model, a torch.onnx.ONNXProgram, an onnxruntime.InferenceSession, a TensorFlow "
    "function or module, or the bytes of a file"
)


_ELSEWHERE = "; or, computed elsewhere, arrays by output or a function of data"


def model_file(
    model: Any,
    folder: Path,
    *,
    inputs: Sequence[TensorSpec] = (),
    data: Path | None = None,
    name: str = "model",
    recorded: bool = False,
) -> tuple[Path, bool]:
    """Write a model into a folder, unless it's a path already.

    Args:
        model: See the message of `UsageError`.
        folder: For the file; made where one is written.
        inputs: As declared, for a module that is exported.
        name: What the caller's argument is called.
        recorded: Whether outputs will do that were computed elsewhere, or a function that computes them.
        data: An .npz or .npy whose first samples are what a module is exported with.

    Returns:
        The path, and whether the model was an object: one's own, which is trusted.

    Raises:
        ModelLoadError: if the framework can't write it.
        UsageError: if it's nothing that is known, or a module is given without inputs.
    """
    if isinstance(model, str | os.PathLike):
        return model_path(argument_path(name, model)), False
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(model).__mro__]
    known = (how for start, how in _WRITERS.items() if any(kind.startswith(start) for kind in kinds))
    file, write = next(known, ("", None))
    if write is None:
        found = recorded_file(model, folder, data, name) if recorded else None
        if found is None:
            raise refused(name, model, f"{_KNOWN}{_ELSEWHERE if recorded else ''}")
        return found, True
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with warnings.catch_warnings():  # what its library says of its own ways of writing is no news to who compares
            warnings.simplefilter("ignore")
            return write(model, folder / file, inputs, data) or folder / file, True
    except UsageError:
        raise
    except Exception as error:
        words = str(error).strip().splitlines()
        raise ModelLoadError(
            f"the {type(model).__qualname__} can't be written as a file: {type(error).__name__}: "
            f"{words[0] if words else ''}. Export it yourself, and give the file."
        ) from error


def _saved(model: Any, path: Path, *_: Any) -> None:
    model.save(str(path))


def _onnx(model: Any, path: Path, *_: Any) -> None:
    import onnx

    onnx.save(model, path, save_as_external_data=model.ByteSize() > onnx.checker.MAXIMUM_PROTOBUF)


def _onnx_ir(model: Any, path: Path, *_: Any) -> None:
    import onnx_ir

    onnx_ir.save(model, path)


def _exported(model: Any, path: Path, *_: Any) -> None:
    import torch

    torch.export.save(model, path)


def _module(model: Any, path: Path, inputs: Sequence[TensorSpec], data: Path | None) -> None:
    """Export a module in its evaluation mode; its batch is left open where it can be."""
    import torch

    training = model.training
    arguments = tuple(_in_type_of(model, torch.from_numpy(array)) for array in _examples(inputs, data))
    model.eval()
    try:
        batch = torch.export.Dim("batch")
        open_batch = [{0: batch} for _ in arguments] if _shares_batch(arguments) else None
        try:
            program = torch.export.export(model, arguments, dynamic_shapes=_by_argument(model, open_batch))
        except Exception:  # noqa: BLE001 (a network whose batch is fixed is exported as it is, or says why not)
            program = torch.export.export(model, arguments)
    finally:
        model.train(training)
    _exported(program, path)


def _in_type_of(model: Any, example: Any) -> Any:
    """An example of real numbers in the type that the module computes with."""
    types = {item.dtype for item in model.parameters() if item.is_floating_point()}
    return example.to(types.pop()) if example.is_floating_point() and len(types) == 1 else example


def _shares_batch(arguments: Sequence[Any]) -> bool:
    return all(array.ndim and len(array) == _BATCH for array in arguments)


def _by_argument(model: Any, shapes: Sequence[Mapping[int, Any]] | None) -> Any:
    """A list of shapes as torch wants them: in a tuple, or for `forward(*args)` in one inside of another."""
    import inspect

    if shapes is None:
        return None
    kinds = [item.kind for item in inspect.signature(model.forward).parameters.values()]
    return (tuple(shapes),) if kinds[:1] == [inspect.Parameter.VAR_POSITIONAL] else tuple(shapes)


def _examples(inputs: Sequence[TensorSpec], data: Path | None) -> list[Any]:
    """Arrays that a module is exported with.

    Raises:
        UsageError: if nothing says what it takes.
    """
    if inputs:
        return [
            np.zeros([size if isinstance(size, int) else _BATCH for size in spec.shape], numpy_dtype(spec.dtype))
            for spec in inputs
        ]
    if data is not None and data.suffix in {".npz", ".npy"}:
        arrays = read_tensors(data)
        return [np.ascontiguousarray(np.resize(array, (_BATCH, *array.shape[1:]))) for array in arrays.values()]
    raise UsageError(
        "a torch.nn.Module is exported with inputs, and none are known. Give arrays as data=, or "
        'inputs=["batch,3,224,224"].'
    )


def _tensorflow(model: Any, path: Path, *_: Any) -> None:
    import tensorflow as tf

    if isinstance(model, tf.Module):
        tf.saved_model.save(model, path)
        return
    function = model
    if hasattr(model, "get_concrete_function"):
        if getattr(model, "input_signature", None) is None:
            raise UsageError("a tf.function needs an input_signature, or give what get_concrete_function returns.")
        function = model.get_concrete_function()
    module = tf.Module()
    module.held = getattr(function, "variables", ())
    tf.saved_model.save(module, path, signatures=function)


def _bytes(model: Any, path: Path, *_: Any) -> None:
    """The bytes of a file, whose format they say themselves."""
    path.write_bytes(model)


def _session(model: Any, path: Path, *_: Any) -> Path | None:
    """The file that a session was made of, or the bytes."""
    if held := getattr(model, "_model_bytes", None):
        _bytes(held, path)
        return None
    file = getattr(model, "_model_path", None)
    if not file or not Path(file).is_file():
        raise UsageError("the onnxruntime.InferenceSession doesn't say what it was made of. Give the model's file.")
    return Path(file).absolute()


_WRITERS: Mapping[str, tuple[str, Callable[..., Path | None]]] = {
    "torch.jit._script.ScriptModule": ("model.pt", _saved),
    "torch.jit._script.RecursiveScriptModule": ("model.pt", _saved),
    "torch.export.exported_program.ExportedProgram": ("model.pt2", _exported),
    "torch.nn.modules.module.Module": ("model.pt2", _module),
    "keras.src.models.model.Model": ("model.keras", _saved),
    "onnx.onnx_ml_pb2.ModelProto": ("model.onnx", _onnx),
    "onnx.onnx_ml.ModelProto": ("model.onnx", _onnx),
    "onnx_ir._core.Model": ("model.onnx", _onnx_ir),
    "onnx_ir.Model": ("model.onnx", _onnx_ir),
    "tensorflow.python": ("saved_model", _tensorflow),
    "builtins.bytes": ("model", _bytes),
    "torch.onnx.ONNXProgram": ("model.onnx", _saved),
    "onnxruntime.capi.onnxruntime_inference_collection.InferenceSession": ("model", _session),
}
"""A file's name, and what writes it, or says which one there is; by the beginning of a class's name or a base's."""
