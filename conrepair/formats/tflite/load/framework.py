"""TFLite flatbuffers through the LiteRT interpreter."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from conrepair.formats.models.model import Description, Model, short_text
from conrepair.formats.models.runnable import Array, Runnable, loading
from conrepair.formats.tflite.load.screening import check_tables, dtype_of, has_numbers, kind_of, tables_of
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec, shape_of
from conrepair.ground.runtime.words import natural_order

KERNELS = {"delegate": "AUTO", "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "reference": "BUILTIN_REF"}
"""Which kernels run, and how LiteRT calls them: XNNPACK's where it has some, TFLite's, plain loops.

What it calls BUILTIN has XNNPACK, too.
"""

# Operators that leave indices what they are, and which of their operands those are. Negative ones count from
# the end: SELECT_V2(indices < 0, indices + size, indices).
_FIRST, _BRANCHES = slice(1), slice(1, 3)
_VALUES = {"CAST": _FIRST, "EXPAND_DIMS": _FIRST, "RESHAPE": _FIRST, "SELECT_V2": _BRANCHES, "SQUEEZE": _FIRST}


class TfliteRunnable(Runnable):
    """An interpreter; a symbolic batch is resized when the batch changes."""

    def __init__(self, model: Model, *, kernels: str = "delegate", threads: int | None = None) -> None:
        """Load a model.

        Args:
            model: A file.
            kernels: A key of `KERNELS`.
            threads: How many an operator may take; None: one for each core.
        """
        self._path, self._threads = model.path, threads or os.cpu_count()
        self._resolver = getattr(OpResolverType, KERNELS[kernels])
        with loading(model, "a TFLite model"):
            self.states = _states_of(check_tables(model.path))
            self._open()
            names = signature_names(self.interpreter)
            self._input_details = in_order(self.interpreter.get_input_details(), names)
            self._output_details = in_order(self.interpreter.get_output_details(), names)
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
            model_path=self._path, num_threads=self._threads, experimental_op_resolver_type=self._resolver
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
    """See `conrepair.formats.models.formats.Format`."""

    def describe(self, model: Model) -> Description:
        """Describe from the flatbuffer, after the interpreter has accepted it."""
        runnable = TfliteRunnable(model)
        content = tables_of(Path(model.path).read_bytes())
        with loading(model, "a TFLite model"):
            operators, weights, matrices = count_operators(content)
            written = {item.name.decode(): content.buffers[item.buffer].data for item in content.metadata or []}
            metadata = {name: short_text(b"" if data is None else bytes(data)) for name, data in written.items()}
            sizes = {runnable.tensor_names[name]: size for name, size in _table_sizes(content).items()}
        return Description.counted(
            operators,
            weights,
            format="TFLite",
            inputs=tuple(replace(spec, high=sizes.get(spec.name)) for spec in runnable.inputs),
            outputs=runnable.outputs,
            matrices=dict(matrices),
            metadata=metadata,
            states=runnable.states,
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """With the default delegate (XNNPACK); the second opinion runs TFLite's own kernels."""
        return TfliteRunnable(model, kernels="builtin" if second_opinion else "delegate")


def count_operators(model: Any) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Operators by name, weights by type, and matrices by type.

    Args:
        model: A file's tables.
    """
    operators: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    matrices: Counter[str] = Counter()
    for graph in model.subgraphs:
        operators.update(_operator_name(model, operator) for operator in graph.operators or [])
        for tensor in graph.tensors or []:
            if has_numbers(model, tensor) and tensor.shape is not None and len(tensor.shape):
                weights[dtype_of(tensor.type)] += int(np.prod(tensor.shape))
                matrices[dtype_of(tensor.type)] += int(np.count_nonzero(np.asarray(tensor.shape) > 1) > 1)
    return operators, weights, matrices


def _operator_name(model: Any, operator: Any) -> str:
    code = model.operatorCodes[operator.opcodeIndex]
    kind = kind_of(model, operator) or str(max(code.builtinCode, code.deprecatedBuiltinCode))
    return str(code.customCode.decode()) if kind == "CUSTOM" else kind


def _table_sizes(model: Any) -> dict[str, int]:
    """The smallest constant table that each input, by the name of its tensor, is looked up in."""
    graph = model.subgraphs[0]
    names = {int(index): graph.tensors[index].name.decode() for index in graph.inputs}
    sizes: dict[str, int] = {}
    for operator in graph.operators or []:
        kind, inputs = kind_of(model, operator), [] if operator.inputs is None else list(map(int, operator.inputs))
        if kind in _VALUES:
            origin = next((names[index] for index in inputs[_VALUES[kind]] if index in names), None)
            if origin is not None:
                names[int(operator.outputs[0])] = origin
        elif kind in {"GATHER", "EMBEDDING_LOOKUP"}:
            axis = operator.builtinOptions.axis if kind == "GATHER" else 0
            table, indices = inputs if kind == "GATHER" else reversed(inputs)
            tensor = graph.tensors[table]
            if indices in names and has_numbers(model, tensor):
                size = int(tensor.shape[axis % len(tensor.shape)])
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
    return TensorSpec(
        names.get(detail["index"], detail["name"]),
        shape_of(detail.get("shape_signature", detail["shape"])),
        "string" if dtype.kind in "SO" else dtype.name,
        Quantization(float(scale), int(zero_point)) if scale and dtype.kind in "iu" else None,
    )


def _states_of(model: Any) -> tuple[str, ...]:
    """Names of the variables that a call assigns; those that are only set once, at its first, are weights.

    Args:
        model: A file's tables.
    """
    calls = [
        (place, kind_of(model, operator), operator)
        for place, graph in enumerate(model.subgraphs)
        for operator in graph.operators or []
    ]
    once = {operator.builtinOptions.initSubgraphIndex for _, kind, operator in calls if kind == "CALL_ONCE"}
    names = {
        (place, int(operator.outputs[0])): (operator.builtinOptions.sharedName or b"").decode(errors="replace")
        for place, kind, operator in calls
        if kind == "VAR_HANDLE"
    }
    assigned = [
        names.get((place, int(operator.inputs[0])), "a variable")
        for place, kind, operator in calls
        if kind == "ASSIGN_VARIABLE" and place not in once
    ]
    return tuple(dict.fromkeys(assigned))


FRAMEWORK = TfliteFramework()
