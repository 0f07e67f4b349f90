"""Rewrite a model into what a consumer reads, and make sure that it computes the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import onnx_ir

from conrepair.formats.onnx.passes.explicit_pads import explicit_pads
from conrepair.formats.onnx.passes.files import load
from conrepair.formats.onnx.passes.fold_constants import fold_constants
from conrepair.formats.onnx.passes.fold_shapes import fold_shapes
from conrepair.formats.onnx.passes.inline_functions import inline_functions
from conrepair.formats.onnx.passes.lower_opset import lower_opset
from conrepair.formats.onnx.passes.raise_opset import raise_opset
from conrepair.formats.onnx.passes.rewrites.all_rewrites import rewrites_named
from conrepair.formats.onnx.passes.sizes import declare_sizes
from conrepair.formats.onnx.passes.unroll_loops import unroll_loops
from conrepair.formats.onnx.passes.verify import DrawnReference
from conrepair.formats.onnx.passes.wants import Wants
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.onnx_graphs.infer_shapes import infer_shapes
from conrepair.ground.onnx_graphs.remove_unused import remove_identities, remove_unused
from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.notes import note

# Give every output of a graph a node of its own.


def separate_outputs(model: onnx_ir.Model) -> None:
    """Put an Identity in place before outputs that are inputs, constants, repeated, or one of a node's several.

    The outputs keep their names.
    """
    graph = model.graph
    seen: set[int] = set()
    for position, value in enumerate(graph.outputs):
        node = value.producer()
        if value.type is not None and not isinstance(value.type, onnx_ir.TensorType):
            continue  # sequences: Identity takes them from opset 14 on
        alone = node is not None and len(node.outputs) == 1 and not value.uses()
        if alone and id(value) not in seen:
            seen.add(id(value))
            continue
        identity = onnx_ir.node("Identity", [value], name=f"output {position}")
        result = identity.outputs[0]
        result.type, result.shape = value.type, value.shape
        name = value.name
        if id(value) in seen or value.is_graph_input():
            result.name = f"{name}/output {position}"
        else:
            result.name, value.name = name, f"{name}/inner"
        seen.add(id(value))
        graph.append(identity)
        graph.outputs[position] = result


Pass = tuple[str, Callable[[onnx_ir.Model], None]]
"""A name, and what rewrites a model in place."""


def normalise(path: str | Path, wants: Wants, declared: Sequence[TensorSpec] = ()) -> onnx_ir.Model:
    """Load a model and rewrite it; the file isn't changed.

    The outputs are compared once, after all passes; only when they differ are the passes applied one by one
    again, to name the guilty one.

    Args:
        path: Of an ONNX file, with external data beside it.
        wants: What the consumer reads.
        declared: The inputs' sizes, where the model leaves them symbolic.

    Raises:
        ConversionError: if the model can't be expressed as wanted, or a pass changed what it computes.
    """
    path = Path(path)
    model = load(path)
    for _, step in passes_for(wants, declared):
        step(model)
    reference = DrawnReference(path, declared, wants.batch)
    if reference.difference(model) is not None:
        raise _accusation(path, passes_for(wants, declared), reference)
    if reference.unknown:
        note(f"the normalised model was not compared with the original: {reference.unknown}")
    return model


def passes_for(wants: Wants, declared: Sequence[TensorSpec] = ()) -> Iterator[Pass]:
    """The passes that a consumer needs, in order."""
    folding: list[Pass] = [("fold_shapes", fold_shapes), ("fold_constants", fold_constants)] if wants.fold else []
    yield "inline_functions", inline_functions
    yield "declare_sizes", lambda model: declare_sizes(model, declared, wants.batch)
    yield "infer_shapes", infer_shapes
    if not wants.identities:
        yield "remove_identities", remove_identities
    yield from folding
    if not wants.loops:
        yield "unroll_loops", unroll_loops
        yield from folding
    yield "raise_opset", lambda model: raise_opset(model, wants.lowest)
    highest = wants.highest
    if highest is not None or wants.expand:
        yield "lower_opset", lambda model: lower_opset(model, highest or model.opset_imports.get("", 1), wants.expand)
        if not wants.identities:
            yield "remove_identities", remove_identities
        yield from folding
    if wants.explicit_pads:
        yield "explicit_pads", explicit_pads
    for name, rewrite in rewrites_named(wants.rewrites):
        yield name, rewrite
        yield "infer_shapes", infer_shapes
    yield "remove_unused", remove_unused
    if wants.own_outputs:
        yield "separate_outputs", separate_outputs
    yield "infer_shapes", infer_shapes


def _accusation(path: Path, passes: Iterator[Pass], reference: DrawnReference) -> ConversionError:
    """Find the first pass after which the outputs differ."""
    done = list(passes)
    model = load(path)
    for name, step in done:
        step(model)
        difference = reference.difference(model)
        if difference is not None:
            return ConversionError(
                f"pass {name} changed what {path.name} computes ({difference}), so its result was not used. "
                "Please report it; another route (`via`) may do without it."
            )
    names = ", ".join(name for name, _ in done)
    return ConversionError(f"the passes {names} changed what {path.name} computes, but none of them alone.")
