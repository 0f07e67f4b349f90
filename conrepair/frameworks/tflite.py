"""TFLite flatbuffers through the LiteRT interpreter."""

from __future__ import annotations

import mmap
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from conrepair.data.tensor_spec import Quantization, TensorSpec
from conrepair.frameworks.model import Description, Model, short_text
from conrepair.frameworks.runnable import Array, Runnable, load_error
from conrepair.frameworks.screening.tflite import check_tables
from conrepair.frameworks.states.tflite import states_of
from conrepair.runtime.words import natural_order

__all__ = [
    "FRAMEWORK",
    "KERNELS",
    "TfliteFramework",
    "TfliteRunnable",
    "count_operators",
    "in_order",
    "signature_names",
]

KERNELS = {"delegate": "AUTO", "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "reference": "BUILTIN_REF"}
"""Which kernels run, and how LiteRT calls them: XNNPACK's where it has some, TFLite's, plain loops.

What it calls BUILTIN has XNNPACK, too.
"""

# Operators that leave indices what they are, and which of their operands those are. Negative ones count from
# the end: SELECT_V2(indices < 0, indices + size, indices).
_FIRST, _BRANCHES = slice(1), slice(1, 3)
_VALUES = {
    "CAST": _FIRST,
    "EXPAND_DIMS": _FIRST,
    "RESHAPE": _FIRST,
    "SELECT_V2": _BRANCHES,
    "SQUEEZE": _FIRST,
}


class TfliteRunnable(Runnable):
    """An interpreter; a symbolic batch is resized when the batch changes."""

    def __init__(self, model: Model, *, kernels: str = "delegate", threads: int | None = None) -> None:
        """Load it.

        Args:
            model: A file.
            kernels: A key of `KERNELS`.
            threads: How many an operator may take; None: one for each core.
        """
        self._path, self._threads = model.path, threads or os.cpu_count()
        self._resolver = getattr(OpResolverType, KERNELS[kernels])
        try:
            check_tables(model.path)
            self._open()
            names = signature_names(self.interpreter)
            self.states = _states(model.path)
            self._input_details = in_order(self.interpreter.get_input_details(), names)
            self._output_details = in_order(self.interpreter.get_output_details(), names)
        except Exception as error:
            raise load_error(model, "a TFLite model", error) from error
        self.inputs = tuple(_spec(detail, names) for detail in self._input_details)
        self.outputs = tuple(
            replace(_spec(detail, names), name=name)
            for detail, name in zip(
                self._output_details, _output_names(self.interpreter, self._output_details), strict=True
            )
        )
        self.ordered = not names  # a signature is a mapping
        self._shapes = [tuple(detail["shape"]) for detail in self._input_details]

    @property
    def tensor_names(self) -> dict[str, str]:
        """Names of the inputs and outputs by the names of their tensors in the file."""
        details, specs = [*self._input_details, *self._output_details], [*self.inputs, *self.outputs]
        return {detail["name"]: spec.name for detail, spec in zip(details, specs, strict=True)}

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        arrays = [feeds[spec.name] for spec in self.inputs]
        self._fit(arrays)
        for detail, array in zip(self._input_details, arrays, strict=True):
            self.interpreter.set_tensor(detail["index"], array)
        self.interpreter.invoke()
        return {
            spec.name: self.interpreter.get_tensor(detail["index"])
            for spec, detail in zip(self.outputs, self._output_details, strict=True)
        }

    def _open(self) -> None:
        self.interpreter = Interpreter(
            model_path=self._path,
            num_threads=self._threads,
            experimental_op_resolver_type=self._resolver,
        )
        self.interpreter.allocate_tensors()

    def _reset(self) -> None:
        """Variables of operators are set anew by the interpreter; those that operators share, by another alone."""
        if self.states:
            self._open()
            self._shapes = [tuple(detail["shape"]) for detail in self._input_details]
        self.interpreter.reset_all_variables()

    def _fit(self, arrays: list[Array]) -> None:
        shapes = [array.shape for array in arrays]
        if shapes == self._shapes:
            return
        for detail, array in zip(self._input_details, arrays, strict=True):
            self.interpreter.resize_tensor_input(detail["index"], array.shape)
        self.interpreter.allocate_tensors()
        self._shapes = shapes


class TfliteFramework:
    """See `conrepair.frameworks.runnable.Framework`."""

    def describe(self, model: Model) -> Description:
        """Describe from the flatbuffer, after the interpreter has accepted it."""
        runnable = TfliteRunnable(model)
        import tflite

        content = tflite.Model.GetRootAsModel(Path(model.path).read_bytes(), 0)
        try:
            operators, weights, matrices = count_operators(content)
            written = [content.Metadata(place) for place in range(content.MetadataLength())]
            metadata = {
                item.Name().decode(): short_text(bytes(content.Buffers(item.Buffer()).DataAsNumpy()))
                for item in written
            }
            sizes = {runnable.tensor_names[name]: size for name, size in _table_sizes(content).items()}
        # Reading a damaged flatbuffer raises whatever its bytes make of it.
        except Exception as error:
            raise load_error(model, "a TFLite model", error) from error
        return Description(
            format="TFLite",
            inputs=tuple(replace(spec, high=sizes.get(spec.name)) for spec in runnable.inputs),
            outputs=runnable.outputs,
            operators=dict(sorted(operators.items())),
            parameters=sum(weights.values()),
            weights=dict(weights),
            matrices=dict(matrices),
            metadata=metadata,
            states=runnable.states,
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """With the default delegate (XNNPACK); the second opinion runs TFLite's own kernels."""
        return TfliteRunnable(model, kernels="builtin" if second_opinion else "delegate")


def _states(path: str) -> tuple[str, ...]:
    """Variables that calls change, read without the weights."""
    import tflite

    with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return states_of(tflite.Model.GetRootAsModel(content, 0))


def count_operators(model: Any) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Operators by name, weights by type, and matrices by type."""
    import tflite

    type_names = {value: name.lower() for name, value in vars(tflite.TensorType).items() if isinstance(value, int)}
    operators: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    matrices: Counter[str] = Counter()
    for index in range(model.SubgraphsLength()):
        graph = model.Subgraphs(index)
        for position in range(graph.OperatorsLength()):
            operators[_operator_name(model, graph.Operators(position))] += 1
        for position in range(graph.TensorsLength()):
            tensor = graph.Tensors(position)
            if _is_stored(model, tensor) and tensor.ShapeLength():
                sizes = tensor.ShapeAsNumpy()
                weights[type_names[tensor.Type()]] += int(np.prod(sizes))
                matrices[type_names[tensor.Type()]] += int(np.count_nonzero(sizes > 1) > 1)
    return operators, weights, matrices


def _is_stored(model: Any, tensor: Any) -> bool:
    """Whether a tensor's numbers stand in the file, maybe behind the flatbuffer."""
    buffer = model.Buffers(tensor.Buffer())
    return bool(buffer.DataLength() or buffer.Offset() > 1)


def _operator_name(model: Any, operator: Any) -> str:
    import tflite

    names = {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
    code = model.OperatorCodes(operator.OpcodeIndex())
    builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    name = names.get(builtin, str(builtin))
    return str(code.CustomCode().decode()) if name == "CUSTOM" else name


def _table_sizes(model: Any) -> dict[str, int]:
    """The smallest constant table that each input, by the name of its tensor, is looked up in."""
    import tflite

    graph = model.Subgraphs(0)
    names = {int(index): graph.Tensors(index).Name().decode() for index in graph.InputsAsNumpy()}
    sizes: dict[str, int] = {}
    for position in range(graph.OperatorsLength()):
        operator = graph.Operators(position)
        kind, inputs = _operator_name(model, operator), [int(index) for index in operator.InputsAsNumpy()]
        if kind in _VALUES:
            origin = next((names[index] for index in inputs[_VALUES[kind]] if index in names), None)
            if origin is not None:
                names[operator.Outputs(0)] = origin
        elif kind in {"GATHER", "EMBEDDING_LOOKUP"}:
            axis = 0
            if kind == "GATHER":
                options = tflite.GatherOptions()
                options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
                axis = options.Axis()
            table, indices = inputs if kind == "GATHER" else reversed(inputs)
            tensor = graph.Tensors(table)
            if indices in names and _is_stored(model, tensor):
                size = int(tensor.Shape(axis % tensor.ShapeLength()))
                sizes[names[indices]] = min(size, sizes.get(names[indices], size))
    return sizes


def signature_names(interpreter: Any) -> dict[int, str]:
    """Names of the inputs and outputs by tensor index, from the only signature if there is one.

    The signature keeps the names (and so the order) that the source gave, which the tensors lose.
    """
    signatures = list(interpreter.get_signature_list())
    if len(signatures) != 1:
        return {}
    runner = interpreter.get_signature_runner(signatures[0])
    details = [*runner.get_input_details().items(), *runner.get_output_details().items()]
    return {detail["index"]: name for name, detail in details}


def _output_names(interpreter: Any, details: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name of its own for each output, although several may be one tensor: a signature's, or with a number."""
    signatures = list(interpreter.get_signature_list())
    known: dict[int, list[str]] = {}
    if len(signatures) == 1:
        said = interpreter.get_signature_runner(signatures[0]).get_output_details()
        for name in natural_order(said):
            known.setdefault(said[name]["index"], []).append(name)
    names: list[str] = []
    for detail in details:
        left = known.get(detail["index"], [])
        name = left.pop(0) if left else str(detail["name"])
        names.append(f"{name}:{names.count(name) + 1}" if name in names else name)
    return names


def in_order(details: list[dict[str, Any]], names: Mapping[int, str]) -> list[dict[str, Any]]:
    """In the order of the signature's names, as the converters leave the tensors in any order."""
    if not all(detail["index"] in names for detail in details):
        return details
    position = {name: place for place, name in enumerate(natural_order(names.values()))}
    return sorted(details, key=lambda detail: position[names[detail["index"]]])


def _spec(detail: Mapping[str, Any], names: Mapping[int, str]) -> TensorSpec:
    scale, zero_point = detail["quantization"]
    dtype = np.dtype(detail["dtype"])
    signature = detail.get("shape_signature", detail["shape"])
    shape: tuple[int | str, ...] = tuple("?" if size < 0 else int(size) for size in signature)
    if shape and shape[0] == "?":
        shape = ("batch", *shape[1:])
    return TensorSpec(
        names.get(detail["index"], detail["name"]),
        shape,
        "string" if dtype.kind in "SO" else dtype.name,
        Quantization(float(scale), int(zero_point)) if scale and dtype.kind in "iu" else None,
    )


FRAMEWORK = TfliteFramework()
