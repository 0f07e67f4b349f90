"""TFLite flatbuffers through the LiteRT interpreter."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from conrepair.data.tensor_spec import Quantization, TensorSpec
from conrepair.frameworks.model import Description, Model
from conrepair.frameworks.runnable import Array, Runnable, load_error

__all__ = ["FRAMEWORK", "TfliteFramework", "TfliteRunnable"]


class TfliteRunnable(Runnable):
    """An interpreter; a symbolic batch is resized when the batch changes."""

    def __init__(self, model: Model, *, without_delegates: bool = False) -> None:
        resolver = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES if without_delegates else OpResolverType.AUTO
        try:
            self.interpreter = Interpreter(
                model_path=model.path,
                num_threads=os.cpu_count(),
                experimental_op_resolver_type=resolver,
            )
            self.interpreter.allocate_tensors()
        except Exception as error:
            raise load_error(model, "a TFLite model", error) from error
        names = _signature_names(self.interpreter)
        self._input_details = self.interpreter.get_input_details()
        self._output_details = self.interpreter.get_output_details()
        self.inputs = tuple(_spec(detail, names) for detail in self._input_details)
        self.outputs = tuple(_spec(detail, names) for detail in self._output_details)

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

    def _fit(self, arrays: list[Array]) -> None:
        current = [tuple(detail["shape"]) for detail in self._input_details]
        if current == [array.shape for array in arrays]:
            return
        for detail, array in zip(self._input_details, arrays, strict=True):
            self.interpreter.resize_tensor_input(detail["index"], array.shape)
        self.interpreter.allocate_tensors()
        self._input_details = self.interpreter.get_input_details()


class TfliteFramework:
    """See `conrepair.frameworks.runnable.Framework`."""

    def describe(self, model: Model) -> Description:
        """Describe from the flatbuffer, after the interpreter has accepted it."""
        runnable = TfliteRunnable(model)
        operators, weights = _read_flatbuffer(Path(model.path))
        return Description(
            format="TFLite",
            inputs=runnable.inputs,
            outputs=runnable.outputs,
            operators=dict(sorted(operators.items())),
            parameters=sum(weights.values()),
            weights=dict(weights),
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """With the default delegate (XNNPACK); the second opinion runs TFLite's own kernels."""
        return TfliteRunnable(model, without_delegates=second_opinion)


def _read_flatbuffer(path: Path) -> tuple[Counter[str], Counter[str]]:
    import tflite

    operator_names = {value: name for name, value in vars(tflite.BuiltinOperator).items() if isinstance(value, int)}
    type_names = {value: name.lower() for name, value in vars(tflite.TensorType).items() if isinstance(value, int)}
    model = tflite.Model.GetRootAsModel(path.read_bytes(), 0)
    operators: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    for index in range(model.SubgraphsLength()):
        graph = model.Subgraphs(index)
        for position in range(graph.OperatorsLength()):
            code = model.OperatorCodes(graph.Operators(position).OpcodeIndex())
            builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
            name = operator_names.get(builtin, str(builtin))
            operators[code.CustomCode().decode() if name == "CUSTOM" else name] += 1
        for position in range(graph.TensorsLength()):
            tensor = graph.Tensors(position)
            if model.Buffers(tensor.Buffer()).DataLength() and tensor.ShapeLength():
                weights[type_names[tensor.Type()]] += int(np.prod(tensor.ShapeAsNumpy()))
    return operators, weights


def _signature_names(interpreter: Any) -> dict[int, str]:
    """Names of the inputs and outputs by tensor index, from the only signature if there is one.

    The signature keeps the names (and so the order) that the source gave, which the tensors lose.
    """
    signatures = list(interpreter.get_signature_list())
    if len(signatures) != 1:
        return {}
    runner = interpreter.get_signature_runner(signatures[0])
    details = [*runner.get_input_details().items(), *runner.get_output_details().items()]
    return {detail["index"]: name for name, detail in details}


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
