"""tract as a plug-in: a runtime of ONNX files in Rust that shares no kernel with others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conrepair.plugins import Array, Backend, ConfigError, Model, Runnable, describe, loading

_TYPES = {"bool": "bool", "float16": "f16", "float32": "f32", "float64": "f64"} | {
    f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_PROGRAM = """\
import onnx
import tract


def compute(feeds):
    names = [item.name for item in onnx.load("model.onnx", load_external_data=False).graph.output]
    model = tract.onnx().load("model.onnx")
    kinds = {types}
    order = [model.input_name(place) for place in range(model.input_count())]
    for place, name in enumerate(order):
        sizes = "".join(f"{{size}}," for size in feeds[name].shape)
        model.set_input_fact(place, sizes + kinds[feeds[name].dtype.name])
    found = model.into_model().into_runnable().run([feeds[name] for name in order])
    return {{name: tensor.to_numpy() for name, tensor in zip(names, found)}}
"""


class Prepared(Runnable):
    """A model that's prepared anew for sizes that come, since tract knows no open ones of its inputs."""

    def __init__(self, model: Model) -> None:
        """Prepare it, where no size is open.

        Args:
            model: An ONNX file.
        """
        found = describe(model)
        self.inputs, self.outputs, self._model = found.inputs, found.outputs, model
        self._prepared: tuple[tuple[tuple[int, ...], ...], Any, list[str]] | None = None
        sizes = [spec.shape for spec in self.inputs]
        if all(isinstance(size, int) for shape in sizes for size in shape):
            self._prepare(tuple(tuple(map(int, shape)) for shape in sizes))

    def _prepare(self, sizes: tuple[tuple[int, ...], ...]) -> tuple[Any, list[str]]:
        import tract

        if self._prepared is None or self._prepared[0] != sizes:
            specs = {spec.name: (spec, shape) for spec, shape in zip(self.inputs, sizes, strict=True)}
            with loading(self._model, "an ONNX model that tract runs"):
                read = tract.onnx().load(self._model.path)
                order = [read.input_name(place) for place in range(read.input_count())]
                for place, name in enumerate(order):
                    spec, shape = specs[name]
                    read.set_input_fact(place, "".join(f"{size}," for size in shape) + _TYPES[spec.dtype])
                self._prepared = sizes, read.into_model().into_runnable(), order
        return self._prepared[1:]

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        runnable, order = self._prepare(tuple(feeds[spec.name].shape for spec in self.inputs))
        found = runnable.run([feeds[name] for name in order])
        return {spec.name: tensor.to_numpy() for spec, tensor in zip(self.outputs, found, strict=True)}


class Tract(Backend):
    """ONNX models by tract, on the processor."""

    runs = "onnx"
    packages: Mapping[str, str] = {"tract": "tract", "onnx": "onnx"}

    def check(self, options: Mapping[str, Any]) -> None:
        """Refuse options: there are none."""
        if options:
            raise ConfigError(f"tract has no options, and is given {', '.join(sorted(options))}")

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        """Prepare a model."""
        return Prepared(model)

    def program(self, options: Mapping[str, Any]) -> str:
        """The same of a model by tract alone."""
        return _PROGRAM.format(types=repr(_TYPES))


BACKEND = Tract()
