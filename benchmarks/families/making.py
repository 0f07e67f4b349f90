"""In a worker: source and target of a case as files, and where its fault is."""

from __future__ import annotations

import ast
import copy
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.common.cases import Case
from benchmarks.common.injecting.inject import layers_otherwise
from benchmarks.families.architecture import Architecture, Array, Fault
from benchmarks.families.architectures import architecture
from benchmarks.families.exporting import INT8, TOOLS, export, format_of, model_of, source_of
from benchmarks.families.tflite_file import open_tflite, write_tflite
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.model import Model
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.files.whole import sha256_of

__all__ = ["SEEN", "Made", "make"]

SEEN, _UNSEEN = 32, 16
_SEED = 20261124
_MOVES = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Cast", "Slice", "Split", "Mul"}
_PLAIN = (bool, int, float, str, tuple, type(None))
_SCOPES = "pkg.torch.onnx.name_scopes"


@dataclass(frozen=True)
class Made:
    """Files of a case.

    Attributes:
        source: The model that's right.
        right: The target without the fault, or the plain one.
        target: The one that's judged.
        data: What the verbs are given.
        seen: The same.
        unseen: Samples that only the benchmark looks at.
        modules: Modules of the network that compute otherwise or hold other numbers, by name.
        real: Right and faulty target in real numbers, where the target is in few bits: there the layers at fault are
            known apart from those that only take other scales.
    """

    source: Path
    right: Path
    target: Path
    data: Path
    seen: DataReference
    unseen: DataReference
    modules: frozenset[str] = frozenset()
    real: tuple[Path, Path] | None = None

    def truth(self) -> dict[str, list[str]]:
        """What the target calls the layers at fault, and the source: an ONNX file by nodes, a program by modules."""
        right, target = self.real or (self.right, self.target)
        exported = self.target.with_suffix(".onnx")  # on the way to TFLite
        own = self.source.suffix == exported.suffix and exported.exists()
        return {
            "target_layers": sorted(_truth(model_of(right), model_of(target), self.modules)),
            "source_layers": sorted(
                layers_otherwise(model_of(exported), model_of(self.source)) if own else self.modules
            ),
        }


def make(case: Case, kept: Path, scratch: Path) -> Made:
    """Make what a case needs.

    Args:
        case: Which.
        kept: Folder for what cases share.
        scratch: Folder for the target.
    """
    chosen, route = architecture(case.model), case.base
    folder = kept / f"{chosen.name}-{route}-{os.getpid()}"
    samples = chosen.samples(np.random.default_rng(_SEED), SEEN + _UNSEEN)
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / "data.npz", **{name: array[:SEEN] for name, array in samples.items()})
        np.savez(folder / "unseen.npz", **{name: array[SEEN:] for name, array in samples.items()})
        network = chosen.build()
        source_of(chosen, route, network, samples, folder)
        export(chosen, route, network, samples, folder / "right")
        (folder / "done").touch()
    source = next(folder.glob("source.*"))
    right = (folder / "right").with_suffix(f".{format_of(route)}")
    target, modules = _target(chosen, case, samples, right, scratch)
    real = _in_real_numbers(chosen, case, samples, scratch)
    seen, unseen = (
        DataReference("tensors", count, str(path), sha256_of(path))
        for count, path in ((SEEN, folder / "data.npz"), (_UNSEEN, folder / "unseen.npz"))
    )
    return Made(source, right, target, folder / "data.npz", seen, unseen, modules, real)


def _target(
    chosen: Architecture, case: Case, samples: dict[str, Array], right: Path, scratch: Path
) -> tuple[Path, frozenset[str]]:
    route, path = case.base, scratch / "target"
    if case.count:
        return _faulty(chosen, chosen.faults[case.faults[0]], route, samples, right, path)
    name, network = case.rewriting, chosen.build()
    if name in chosen.writings:
        network = chosen.writings[name].change(network) or network
    opset = int(name.removeprefix("opset-")) if name.startswith("opset-") else 0
    made = export(chosen, route, network, samples, path, opset=opset)
    if name in TOOLS:
        onnx.save(TOOLS[name](onnx.load(made), scratch / "optimized.onnx"), made)
    return made, frozenset()


def _faulty(
    chosen: Architecture, fault: Fault, route: str, samples: dict[str, Array], right: Path, path: Path
) -> tuple[Path, frozenset[str]]:
    if fault.means == "file":
        made = path.with_suffix(right.suffix)
        if made.suffix == ".onnx":
            model = onnx.load(right)
            fault.change(model)
            onnx.save(model, made)
        else:
            opened = open_tflite(right)
            fault.change(opened)
            write_tflite(opened, made)
        return made, frozenset()
    network = chosen.build()
    if fault.means == "calibration":
        return export(chosen, route, network, samples, path, calibration=fault.change), frozenset()
    if chosen.framework == "keras":
        return export(chosen, route, fault.change(network) or network, samples, path), frozenset()
    before = copy.deepcopy(network)
    fault.change(network)
    made = export(chosen, route, network, samples, path)
    return made, frozenset(_changed(before, network))


def _changed(before: Any, network: Any) -> Iterator[str]:
    """Modules of PyTorch that compute otherwise, or hold other numbers; the whole network isn't said of."""
    known = dict(before.named_modules())
    for name, module in network.named_modules():
        if name and (name not in known or _about(known[name]) != _about(module)):
            yield name


def _about(module: Any) -> tuple[Any, ...]:
    """What a module is, apart from what is in it."""
    attributes = {name: value for name, value in vars(module).items() if isinstance(value, _PLAIN)}
    tensors = (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
    return type(module), attributes, {name: tensor.detach().numpy().tobytes() for name, tensor in tensors}


def _in_real_numbers(
    chosen: Architecture, case: Case, samples: dict[str, Array], scratch: Path
) -> tuple[Path, Path] | None:
    if case.base != INT8 or not case.count or chosen.faults[case.faults[0]].means != "network":
        return None
    right = export(chosen, "keras-tflite", chosen.build(), samples, scratch / "real-right")
    network = chosen.build()
    network = chosen.faults[case.faults[0]].change(network) or network
    return right, export(chosen, "keras-tflite", network, samples, scratch / "real-target")


def _truth(right: Model, target: Model, modules: frozenset[str]) -> set[str]:
    """What the target calls the layers at fault.

    Those that differ from the target without the fault; what reads a tensor that was only moved or scaled otherwise,
    and what else that reads, as where operands are exchanged; what a module that computes otherwise computes itself;
    and inputs that are stored otherwise, as by another calibration.

    Args:
        right: The target without the fault.
        target: With it.
        modules: Of the network, that compute otherwise.
    """
    names = set(layers_otherwise(right, target))
    try:
        editor = open_editor(target)
    # What isn't read has the names that were found so far.
    except ConrepairError:
        return names
    graph = editor.graph
    ahead = [node for node in graph.nodes if editor.names(node) & names]
    seen: set[str] = set()
    while ahead:
        node = ahead.pop()
        if node.name in seen or node.op not in _MOVES:
            continue
        seen.add(node.name)
        readers = [reader for tensor in node.outputs for reader in graph.consumers.get(tensor, ())]
        fed = [tensor for reader in readers if len(reader.inputs) > 1 for tensor in reader.inputs]
        names |= {name for reader in readers for name in editor.names(reader)}
        names |= {name for tensor in fed for name in editor.tensor_names(tensor)}
        ahead += readers
    if target.framework == "onnx":
        names |= {node.name for node in onnx.load(target.path).graph.node if _module(node) in modules}
    stored = [open_editor(model).graph for model in (right, target)]
    for name in set(stored[0].inputs) & set(stored[1].inputs):
        if stored[0].tensors[name].quantization != stored[1].tensors[name].quantization:
            names |= set(editor.tensor_names(name))
    return names


def _module(node: onnx.NodeProto) -> str:
    """The module that an exporter says a node is of."""
    told = {item.key: item.value for item in node.metadata_props}
    if _SCOPES in told:
        scopes = ast.literal_eval(told[_SCOPES])
        return str(scopes[-2]) if len(scopes) > 1 else ""
    return node.name.rpartition("/")[0].strip("/").replace("/", ".")
