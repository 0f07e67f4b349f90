"""A system that stands for one where a test needs some system: it builds nothing, and has the faults asked for.

What a compiler does with a network are passes here, functions that change an ONNX graph; a fault is one, too: it
writes an operator in a form that loses digits, computes something else, or raises.
ONNX's reference runs what they leave, in this process, and ONNX Runtime what's looked into kernel by kernel.
"""

from __future__ import annotations

import dataclasses
import inspect
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from registries import put

from conrepair.formats.backends.all_backends import BACKENDS
from conrepair.formats.backends.base import Backend, Switch, named_rightly
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Array, Runnable
from conrepair.formats.networks.network import CompiledKernel, Network, open_network
from conrepair.formats.onnx.load.file import specs_of_proto
from conrepair.formats.onnx.load.framework import FRAMEWORK
from conrepair.ground.runtime.errors import InferenceError
from conrepair.verdicts.truth.agreement import Agreed, agreed
from conrepair.verdicts.truth.referees import PyTorch, Referee
from conrepair_lab.jobs import systems as jobs
from conrepair_lab.systems.registry import SYSTEMS
from conrepair_lab.systems.system import Program, Setting, System

__all__ = [
    "StandIn",
    "bounded_sigmoid",
    "keep_tanh",
    "leave_all",
    "max_is_min",
    "naive_tanh",
    "refuse_elu",
    "registered",
    "relu_is_abs",
    "shifted_erf",
]

Pass = Callable[[onnx.GraphProto], None]
_PASSES, _WITHOUT = "passes", "without"
_LOAD = """\
import numpy
import onnx
from onnx.reference import ReferenceEvaluator

{passes}
model = onnx.load("{file}")
for step in [{names}]:
    step(model.graph)
evaluator = ReferenceEvaluator(model)
"""
_RUN = """\
with numpy.load("inputs.npz") as inputs:
    found = evaluator.run(None, dict(inputs))
numpy.savez("outputs.npz", **dict(zip(evaluator.output_names, found)))
"""


class _Loaded(Runnable):
    def __init__(self, model: onnx.ModelProto) -> None:
        self._evaluator = ReferenceEvaluator(model)
        self.inputs, self.outputs = specs_of_proto(model)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        try:
            found = self._evaluator.run(None, dict(feeds))
        except (TypeError, ValueError, IndexError) as error:
            raise InferenceError(str(error)) from error
        return dict(zip(self._evaluator.output_names, map(np.asarray, found), strict=True))


class _Backend(Backend):
    """Runs what passes leave; `passes` in its options are on, but for those in `without`."""

    def __init__(self, faults: Sequence[Pass], passes: Mapping[str, Pass]) -> None:
        self.faults, self.passes = faults, passes

    def check(self, options: Mapping[str, Any]) -> None:
        named_rightly(_WITHOUT, options.get(_WITHOUT, ()), self.passes)

    def takes(self, model: Model, options: Mapping[str, Any]) -> str:
        return "onnx"

    def switches(self, options: Mapping[str, Any], load: Callable[[Mapping[str, Any]], Runnable]) -> list[Switch]:
        return [Switch(name, "pass", f'without = ["{name}"]') for name in self.on(options)]

    def without(self, options: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
        return {**options, _WITHOUT: sorted({*options.get(_WITHOUT, ()), *names})}

    def load(self, model: Model, options: Mapping[str, Any]) -> Runnable:
        return _Loaded(self.changed(model, options))

    def on(self, options: Mapping[str, Any]) -> list[str]:
        return [name for name in options.get(_PASSES, ()) if name not in options.get(_WITHOUT, ())]

    def steps(self, options: Mapping[str, Any]) -> tuple[Pass, ...]:
        return *map(self.passes.__getitem__, self.on(options)), *self.faults

    def changed(self, model: Model, options: Mapping[str, Any]) -> onnx.ModelProto:
        found = onnx.load(model.path)
        for step in self.steps(options):
            step(found.graph)
        return found


class StandIn(System):
    """See `System`. Its setting "none" has the faults alone, "all" the passes, too.

    Args:
        faults: What no switch leaves out, as kernels are.
        passes: Switches, by the names of the functions; they come first.
        name: By which it's asked for, without "-".
    """

    alike = True
    plain, usual, fusion = "none", "all", "fused"

    def __init__(self, *faults: Pass, passes: Sequence[Pass] = (), name: str = "standin") -> None:
        self.name = name
        self.backend = _Backend(faults, {item.__name__: item for item in passes})
        self.settings = {"none": Setting(name), "all": Setting(name, {_PASSES: [*self.backend.passes]})}

    def observed(self, model: Model, setting: Setting, folder: Path) -> Network:
        """The graph that the passes leave, where every kernel of the setting "all" has two operators of the file."""
        path = Path(tempfile.mkdtemp(dir=folder)) / "changed.onnx"
        onnx.save(self.backend.changed(model, setting.options), path)
        there = Model("onnx", str(path), model_sha256(path))
        depth = int(setting.options.get(self.fusion, 2 if setting.options.get(_PASSES) else 1))
        return _fused(open_network(there, FRAMEWORK.load(there).inputs), onnx.load(model.path).graph, depth)

    def drawn(self, setting: Setting, generator: np.random.Generator) -> dict[str, Any]:
        """One pass is left out, where there are any."""
        on = self.backend.on(setting.options)
        return {_WITHOUT: [str(generator.choice(on))]} if on else {}

    def blamed(self, setting: Setting, versions: Mapping[str, str]) -> dict[str, str]:
        """ONNX, whose reference it runs."""
        return {name: version for name, version in versions.items() if name == "onnx"}

    def program(self, setting: Setting) -> Program:
        """The passes as they're written, and the reference."""
        steps = self.backend.steps(setting.options)
        passes = "\n\n".join(inspect.getsource(step) for step in (written, *steps))
        names = ", ".join(step.__name__ for step in steps)
        return Program(_LOAD.format(passes=passes, names=names, file=self.file), _RUN)


def _fused(network: Network, graph: onnx.GraphProto, depth: int) -> Network:
    """A network that shows of each so many operators of a file what the last one writes, as a kernel."""
    shown, inside = dict[str, list[onnx.NodeProto]](), list[onnx.NodeProto]()
    for place, node in enumerate(graph.node, 1):
        inside.append(node)
        if not place % depth or node.output[0] in {item.name for item in graph.output}:
            shown[node.output[0]], inside = inside, []
    kernels = {
        name: CompiledKernel((f"kernel_{name}",), tuple((node.output[0], node.op_type) for node in nodes))
        for name, nodes in shown.items()
    }
    tensors = {
        name: item if name in kernels or name in network.graph.inputs else dataclasses.replace(item, observable=False)
        for name, item in network.graph.tensors.items()
    }
    network.graph = dataclasses.replace(network.graph, tensors=tensors)
    network.kernel = kernels.get  # type: ignore[method-assign]
    return network


def registered(monkeypatch: pytest.MonkeyPatch, system: StandIn) -> StandIn:
    """Let a stand-in be found by its name, and no framework be imported where a trace asks all referees."""

    def without_torch(referees: Sequence[Referee], *more: Any) -> Agreed:
        return agreed([item for item in referees if not isinstance(item, PyTorch)], *more)

    monkeypatch.setitem(SYSTEMS, system.name, system)
    put(monkeypatch, BACKENDS, system.name, system.backend)
    monkeypatch.setattr(jobs, "agreed", without_torch)
    return system


# Faults; programs hold their sources, and that of `written`


def written(graph: onnx.GraphProto, kind: str, text: str) -> None:
    """Write operators of a kind, of one input, otherwise: nodes that compute y of x, in ONNX's words."""
    for place, node in reversed([*enumerate(graph.node)]):
        if node.op_type == kind and node.doc_string != "kept":
            own = {"x": node.input[0], "y": node.output[0]}
            del graph.node[place]
            for item in reversed(onnx.parser.parse_graph(f"g () => () {{ {text} }}").node):
                for names in (item.input, item.output):
                    names[:] = [own.get(name, f"{own['y']}/{name}") for name in names]
                graph.node.insert(place, item)


def naive_tanh(graph: onnx.GraphProto) -> None:
    """Tanh loses the digits of small numbers, unless it's kept."""
    exponential = "one = Constant <value_float = 1.0> () two = Add (x, x) e = Exp (two) "
    written(graph, "Tanh", exponential + "less = Sub (e, one) more = Add (e, one) y = Div (less, more)")


def keep_tanh(graph: onnx.GraphProto) -> None:
    """A pass that mends `naive_tanh`."""
    for node in graph.node:
        if node.op_type == "Tanh":
            node.doc_string = "kept"


def leave_all(graph: onnx.GraphProto) -> None:
    """A pass that changes nothing."""


def bounded_sigmoid(graph: onnx.GraphProto) -> None:
    """Sigmoid holds its argument between -18 and 18."""
    bounds = "low = Constant <value_float = -18.0> () high = Constant <value_float = 18.0> () "
    written(graph, "Sigmoid", bounds + "held = Clip (x, low, high) y = Sigmoid (held)")


def shifted_erf(graph: onnx.GraphProto) -> None:
    """Erf has an absolute error of 6e-8, however small it is."""
    shifted = "one = Constant <value_float = 1.0> () e = Erf (x) more = Add (e, one) "
    written(graph, "Erf", shifted + "y = Sub (more, one)")


def max_is_min(graph: onnx.GraphProto) -> None:
    """Max gives the least."""
    for node in graph.node:
        node.op_type = {"Max": "Min"}.get(node.op_type, node.op_type)


def relu_is_abs(graph: onnx.GraphProto) -> None:
    """A pass that is wrong where Relu follows another operator, whatever that is."""
    made = {name for node in graph.node for name in node.output}
    for node in graph.node:
        if node.op_type == "Relu" and made.intersection(node.input):
            node.op_type = "Abs"


def refuse_elu(graph: onnx.GraphProto) -> None:
    """A pass that stumbles over Elu."""
    if any(node.op_type == "Elu" for node in graph.node):
        raise IndexError("list index out of range")
