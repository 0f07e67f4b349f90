"""ONNX through ONNX Runtime. The reference execution has all graph optimizations disabled.

ONNX Runtime's default optimizations are wrong in places (Pad followed by MaxPool on negative inputs), so the
model as written is the specification, and an optimized session is its second opinion.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime

from conrepair.formats.models.identity import model_bytes
from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.runnable import Array, Runnable, loading
from conrepair.formats.onnx.load.border import Border, plain_border
from conrepair.formats.onnx.load.file import STORED, describe_proto, read_valid, with_quantization
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.formats.onnx.load.readable import as_read
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import InferenceError, ModelLoadError

_LEVELS = {
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
_PLAIN = re.compile(r"tensor\((bool|string|float|float16|double|u?int(8|16|32|64)|complex(64|128))\)")
_PROCESSOR = ("CPUExecutionProvider",)
_LARGE = 1 << 30  # bytes of a model
_NEVER = 4  # what's logged of a run stands in the error that it raises, too
_AT_NODE = re.compile(
    r"while running (?P<operator>\w+) node\. Name:'(?P<name>.*?)' Status Message: (?P<why>.*)", re.DOTALL
)
# Of its C++: file, line, function, and the condition that should hold.
_FROM_CODE = re.compile(r"\S+\.(?:cc|cpp|h|hpp):\d+ (?:.*? was false\.|\w+)\s*", re.DOTALL)


class OnnxRunnable(Runnable):
    """An ONNX Runtime session.

    Attributes:
        providers: Who runs operators in it, in order.
    """

    def __init__(
        self,
        model: Model,
        optimization: str = "disabled",
        without: Collection[str] = (),
        providers: Sequence[Any] = _PROCESSOR,
        *,
        threads: int = 0,
        frugal: bool = False,
    ) -> None:
        """Load a model.

        Args:
            model: A file.
            optimization: Level of graph optimizations.
            without: Names of optimizations that are left out of that level.
            providers: Who shall run operators, in order; ONNX Runtime leaves out those that it hasn't.
            threads: How many an operator may take; 0: one for each core.
            frugal: Whether weights of large models are used where they're mapped, not as copies that are quicker or
                in another type.
        """
        options = onnxruntime.SessionOptions()
        if frugal and model_bytes(Path(model.path)) > _LARGE:
            if optimization != "disabled":
                optimization, without = "extended", (*without, "ConstantFolding")
            options.enable_mem_pattern = options.enable_cpu_mem_arena = False
            options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED  # casts where they're read
            options.add_session_config_entry("session.disable_prepacking", "1")
        options.graph_optimization_level = _LEVELS[optimization]
        options.log_severity_level, options.intra_op_num_threads = _NEVER, threads
        # Waiting threads must not spin: the photos of the next batch are decoded meanwhile.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        with loading(model, "an ONNX model"):
            self._session, border = _open(Path(model.path), options, list(without) or None, providers)
        self.providers = tuple(self._session.get_providers())
        self.inputs, self.outputs = (
            tuple(_with_border(spec_of_value(value), border) for value in values)
            for values in (self._session.get_inputs(), self._session.get_outputs())
        )
        given = {value.name: spec_of_value(value).dtype for value in self._session.get_inputs()}
        self._wider = {name: given[name] for name in border.narrow if name in given}
        for value in (*self._session.get_inputs(), *self._session.get_outputs()):
            if not _PLAIN.match(value.type):
                raise ModelLoadError(
                    f"{model.path}: {value.name} is {value.type}, no tensor of numbers or texts, and nothing in the "
                    "graph says which ones it's made of. Export the model with such tensors there."
                )
        if any(spec.dtype in STORED for spec in self.inputs + self.outputs):
            proto = read_proto(model.path)
            self.inputs = with_quantization(proto, self.inputs)
            self.outputs = with_quantization(proto, self.outputs)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        names = [spec.name for spec in self.outputs]
        given = {
            name: array.astype(self._wider[name]) if name in self._wider else array for name, array in feeds.items()
        }
        try:
            return dict(zip(names, self._session.run(names, given), strict=True))
        except Exception as error:
            found = _AT_NODE.search(str(error))
            if found is None:
                raise
            name = f" `{found['name']}`" if found["name"] else ""
            words = f"running the model failed at {found['operator']}{name}: {_plain(found['why'])}"
            raise InferenceError(words) from error


def _with_border(spec: TensorSpec, border: Border) -> TensorSpec:
    """A spec with what the file has there."""
    dtype = border.narrow.get(spec.name, spec.dtype)
    return replace(spec, dtype=dtype, keys=border.keys.get(spec.name, ()))


def _takes_tensors(session: Any) -> bool:
    """Whether all that a session takes and gives are tensors of types that numpy has."""
    return all(_PLAIN.match(value.type) for value in (*session.get_inputs(), *session.get_outputs()))


def write_optimized(model: Model, path: Path, optimization: str, without: Collection[str] = ()) -> None:
    """Write the graph that ONNX Runtime makes of a file, which runs as it is with optimizations disabled.

    Args:
        model: A file.
        path: To write; some operators in it are ONNX Runtime's own, for this processor.
        optimization: Level of graph optimizations.
        without: Names of optimizations that are left out of that level.

    Raises:
        ModelLoadError: if it can't be loaded.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = _LEVELS[optimization]
    options.log_severity_level, options.optimized_model_filepath = _NEVER, str(path)
    with loading(model, "an ONNX model"):
        _open(Path(model.path), options, list(without) or None)


class OnnxFramework:
    """See `conrepair.formats.models.formats.Format`."""

    def describe(self, model: Model) -> Description:
        """Describe from the file; weights in external files are counted, not read."""
        proto = read_valid(model)
        runnable = OnnxRunnable(model, frugal=True)
        return describe_proto(proto, runnable.inputs, runnable.outputs)

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """A session as the file is written; the second opinion has every optimization enabled."""
        return OnnxRunnable(model, "all" if second_opinion else "disabled", frugal=True)


def _open(
    path: Path, options: Any, without: list[str] | None, providers: Sequence[Any] = _PROCESSOR
) -> tuple[Any, Border]:
    """A session of a file; where ONNX Runtime doesn't read it as it is, or not as tensors, of what it means.

    Returns:
        The session, and what its inputs and outputs are in the file.

    Raises:
        Exception: of onnxruntime's, if it can't be loaded in either way; NotReadableError.
    """

    def session(source: str | bytes) -> Any:
        again = int(len(providers) > 1)  # what the processor fails on isn't tried again by the same
        return onnxruntime.InferenceSession(
            source, options, list(providers), disabled_optimizers=without, enable_fallback=again
        )

    def read() -> tuple[Any, Border]:
        proto = as_read(read_proto(path))
        border = plain_border(proto)
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
        return session(proto.SerializeToString()), border

    try:
        opened = session(str(path))
    # onnxruntime raises one class per status code, without a common base of their own.
    except Exception as error:
        if "IR version" not in str(error) and "opset" not in str(error):
            raise
        return read()
    closed = any(0 in value.shape for value in opened.get_inputs() if value.shape)
    return read() if closed or not _takes_tensors(opened) else (opened, Border())


def _plain(words: str) -> str:
    """What ONNX Runtime says of an operator, without where in its code it does."""
    return " ".join(_FROM_CODE.sub("", words).split()).rstrip(".")


def spec_of_value(value: Any) -> TensorSpec:
    """Describe an input or output of an ONNX Runtime session."""
    dtype = value.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    known = [item if isinstance(item, str) or (item is not None and item >= 0) else "" for item in value.shape]
    shape = tuple("?" if item == "" else item for item in known)
    return TensorSpec(value.name, shape, dtype)


FRAMEWORK = OnnxFramework()
