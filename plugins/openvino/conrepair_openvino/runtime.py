"""Models that OpenVINO has read, and those that it has compiled."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import openvino

from conrepair.plugins import Array, Description, DeviceError, Model, Runnable, TensorSpec, loading
from conrepair_openvino import told

WHAT = "a model of OpenVINO"


@functools.cache
def core() -> Any:
    """What reads and compiles, which takes a while to make."""
    return openvino.Core()


def read(model: Model) -> Any:
    """Read a file."""
    with loading(model, WHAT):
        return core().read_model(model.path)


def compiled(model: Any, options: Mapping[str, Any]) -> Any:
    """Compile a model that was read.

    Args:
        model: What to compile.
        options: Of the backend.

    Raises:
        DeviceError: if there's no such device.
    """
    device, devices = options.get("device", "CPU"), core().available_devices
    if device not in {*devices, *(name.partition(".")[0] for name in devices)}:
        there = ", ".join(devices)
        raise DeviceError(f"there is no device {device} here that OpenVINO can reach; there are: {there}")
    return core().compile_model(model, device, told(options))


class Compiled(Runnable):
    """A compiled model."""

    def __init__(
        self,
        model: Model,
        content: Any,
        inputs: Sequence[TensorSpec],
        outputs: Sequence[TensorSpec],
        options: Mapping[str, Any],
    ) -> None:
        """Compile it.

        Args:
            model: The file.
            content: What was read of it.
            inputs: In order.
            outputs: In order.
            options: Of the backend.
        """
        self.inputs, self.outputs = tuple(inputs), tuple(outputs)
        with loading(model, WHAT, passing=DeviceError):
            self._compiled = compiled(content, options)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        found = self._compiled([feeds[spec.name] for spec in self.inputs])
        return {spec.name: found[place].copy() for place, spec in enumerate(self.outputs)}


def spec(port: Any, name: str) -> TensorSpec:
    """What goes into a model, or comes out.

    Args:
        port: Of OpenVINO.
        name: Of the tensor.
    """
    sizes = enumerate(port.get_partial_shape())
    shape = [f"dim{axis}" if axis else "batch" for axis, _ in enumerate(port.get_partial_shape())]
    shape = [shape[axis] if size.is_dynamic else size.get_length() for axis, size in sizes]
    return TensorSpec(name, tuple(shape), port.get_element_type().to_dtype().name)


def name_of(port: Any) -> str:
    """A tensor's name: the first one that it has, else its operator's."""
    names = sorted(port.get_names())
    if names:
        return str(names[0])
    node = port.get_node()
    more = f":{port.get_index()}" if node.get_output_size() > 1 else ""
    return f"{node.get_friendly_name()}{more}"


def description(model: Model) -> Description:
    """What a file consists of."""
    content, weights, matrices = read(model), Counter[str](), Counter[str]()
    operators: Counter[str] = Counter()
    with loading(model, WHAT):
        for op in content.get_ordered_ops():
            kind = op.get_type_name()
            if kind == "Constant" and op.get_element_type().is_real():
                dtype = op.get_element_type().to_dtype().name
                weights[dtype] += op.data.size
                matrices[dtype] += op.data.ndim > 1
            elif kind not in {"Constant", "Parameter", "Result"}:
                operators[kind] += 1
        return Description.counted(
            operators,
            weights,
            format="OpenVINO IR",
            inputs=tuple(spec(port, name_of(port)) for port in content.inputs),
            outputs=tuple(spec(port, name_of(port)) for port in content.outputs),
            matrices=dict(matrices),
        )
