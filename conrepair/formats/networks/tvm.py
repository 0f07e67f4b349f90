"""Builds of TVM as networks: the imported model's graph, computed by the compiled kernels."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.networks.network import CompiledKernel, Network, Segment, open_network
from conrepair.formats.tvm.calls import Calls, KernelCall
from conrepair.formats.tvm.capture import load_calls
from conrepair.formats.tvm.options import BUILD
from conrepair.formats.tvm.runnable import TvmRunnable
from conrepair.formats.tvm.stepping import Stepping
from conrepair.ground.data.following import reached
from conrepair.ground.data.stored_values import to_real, to_stored
from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Tensor
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of


def open_build(folder: Path, model: Model) -> TvmNetwork:
    """Open a build.

    Args:
        folder: That `conrepair.formats.tvm.build.build` wrote.
        model: What it was made of, for builds that don't keep that (older ones, and those for other machines).

    Raises:
        ModelLoadError: if the build can't be loaded, what it was made of isn't there, or no output of that is known.
    """
    runnable = TvmRunnable(folder)
    imported = imported_model(folder, model)
    found = TvmNetwork(open_network(imported, runnable.inputs), runnable, load_calls(folder))
    if not any(found.graph.tensors[name].observable for name in found.graph.outputs):
        raise ModelLoadError(found.other_sizes() or f"{folder} doesn't tell which of its kernels computes an output")
    return found


def imported_model(folder: Path, model: Model | None) -> Model:
    """What a build was made of.

    Args:
        folder: Of the build.
        model: What it was made of, for builds that don't keep that; None where that isn't known.

    Raises:
        ModelLoadError: if it isn't there.
    """
    source = value_of(read_json_text(folder / BUILD))["source"]
    if source.get("kept") is not None:
        path = folder / source["kept"]
        return Model(source["framework"], str(path), model_sha256(path))
    if model is not None and model.sha256 == source["sha256"]:
        return model
    made = "" if model is None else f"wasn't made of {model.path} itself, and "
    raise ModelLoadError(
        f"{folder} {made}doesn't keep its original {source['framework']} model: name that model, or build it again."
    )


class TvmNetwork(Network):
    """See `conrepair.formats.networks.network.Network`.

    What lies inside a kernel can't be observed; all else is as in the model that was imported.

    Attributes:
        original: That model, in its own framework.
        runnable: The build.
    """

    def __init__(self, original: Network, runnable: TvmRunnable, calls: Calls) -> None:
        self.original, self.channels = original, original.channels
        self.runnable = runnable
        self.input_names, self.output_names = original.input_names, original.output_names
        self._calls = calls
        given = {
            original.input_names[spec.name]: value
            for spec, value in zip(runnable.inputs, calls.inputs, strict=True)
            if spec.name in original.input_names
        }
        computed = {name: value for value, names in calls.tensors.items() for name in names}
        tensors = original.graph.tensors
        self._values = {
            name: value
            for name, value in (computed | given).items()
            if name in tensors and tensors[name].observable and self._fits(tensors[name], value)
        }
        self._writer = {value: call for call in calls.calls for value in call.writes}
        self._stepping = Stepping(runnable, calls)
        self.graph = self._graph(original.graph)

    def other_sizes(self) -> str:
        """The first tensor that kernels compute with more or fewer elements than the imported model, in words."""
        tensors = self.graph.tensors
        for call in self._calls.calls:
            for value in call.writes:
                shape = self._calls.shapes[value][0]
                for known in (tensors[name].shape for name in self._calls.tensors.get(value, ()) if name in tensors):
                    if known is not None and math.prod(known) != math.prod(shape):
                        operators = ", ".join(f"{self._calls.operators[name]} `{name}`" for name in call.members)
                        return (
                            f"the kernel `{call.function}` ({operators}) computes sizes {list(shape)}, and the model "
                            f"has {list(known)} there: TVM's importer reads an operator as something else than the "
                            "model says. Write it by other operators, and report it to TVM"
                        )
        return ""

    def segment(self, fed: Collection[str], wanted: Sequence[str]) -> TvmSegment:
        """See the base class."""
        wanted = tuple(dict.fromkeys(wanted))
        self.check_cuts(fed, wanted)
        needs = self._needs(fed, wanted)
        specs = {name: self._spec(name) for name in (*needs, *wanted)}
        return TvmSegment(self._stepping, {name: self._values[name] for name in specs}, specs, needs, wanted)

    def kernel(self, tensor: str) -> CompiledKernel | None:
        """See the base class; None where a kernel has the tensor inside, too."""
        last = self._writer.get(self._values.get(tensor, ""))
        if last is None:
            return None
        inner = {name: call for name, call in self._writer.items() if call.part or call is last}
        following = {name: list(filter(None, call.reads)) for name, call in inner.items()}
        values = reached([self._values[tensor]], lambda name: following.get(name, ()))
        parts = {id(inner[name]) for name in values if name in inner}
        functions = tuple(call.function for call in self._calls.calls if id(call) in parts)
        return CompiledKernel(functions, tuple((name, self._calls.operators[name]) for name in last.members))

    def _needs(self, fed: Collection[str], wanted: Sequence[str]) -> tuple[str, ...]:
        """The fed tensors that some others are computed from."""
        name_of = {self._values[name]: name for name in reversed(list(fed))}

        def reads(value: str) -> Iterable[str]:
            return filter(None, self._writer[value].reads)

        begin = [value for name in wanted for value in reads(self._values[name])]
        found = reached(begin, lambda value: () if value in name_of or value not in self._writer else reads(value))
        if found.keys() - name_of.keys() - self._writer.keys():
            raise ValueError(f"{', '.join(wanted)} can't be computed without the network's inputs")
        needs = {name_of[value] for value in found if value in name_of}
        return tuple(name for name in dict.fromkeys(fed) if name in needs)

    def _fits(self, tensor: Tensor, value: str) -> bool:
        """Whether a value has the tensor's shape: an importer may turn axes."""
        known = self._calls.shapes.get(value)
        return known is None or tensor.shape is None or tuple(tensor.shape) == tuple(known[0])

    def _spec(self, name: str) -> TensorSpec:
        tensor, known = self.graph.tensors[name], self._calls.shapes.get(self._values[name])
        shape, dtype = known if known is not None else (tensor.shape or (), tensor.dtype)
        return TensorSpec(name, shape, dtype, tensor.quantization)

    def _graph(self, graph: LayerGraph) -> LayerGraph:
        tensors = {
            name: dataclasses.replace(tensor, observable=name in self._values)
            for name, tensor in graph.tensors.items()
        }
        return dataclasses.replace(graph, tensors=tensors)


class TvmSegment(Segment):
    """Kernels of a build; the others are skipped.

    Args:
        stepping: The build.
        values: Of the tensors, by name.
        specs: How kernels take and give them.
        needs: See `Segment`.
        wanted: See `Segment`.
    """

    def __init__(
        self,
        stepping: Stepping,
        values: Mapping[str, str],
        specs: Mapping[str, TensorSpec],
        needs: tuple[str, ...],
        wanted: tuple[str, ...],
    ) -> None:
        self.needs, self.wanted = needs, wanted
        self._stepping, self._values, self._specs = stepping, values, specs

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """See `Segment`."""
        given = {self._values[name]: self._stored(name, feeds[name]) for name in self.needs}
        results: dict[str, Array] = {}

        def note(call: KernelCall, arrays: Sequence[Array]) -> None:
            results.update(zip(call.writes, arrays, strict=True))

        self._stepping.run(given, {self._values[name] for name in self.wanted}, note)
        return {name: to_real(self._specs[name], results[self._values[name]]) for name in self.wanted}

    def _stored(self, name: str, array: Array) -> Array:
        spec = self._specs[name]
        if spec.quantization is not None:
            return to_stored(spec, array)
        return np.asarray(array, numpy_dtype(spec.dtype))
