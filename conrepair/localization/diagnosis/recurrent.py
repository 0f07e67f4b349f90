"""What a recurrent layer has become, however the target writes it: told from its results, and from its numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import Node
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.gates import PARTS, WAYS, carried_gates, gate_differences
from conrepair.localization.diagnosis.recurrence import recurrent_layer, wrong_forms
from conrepair.localization.diagnosis.recurrent_run import Layers, RecurrentRun
from conrepair.localization.diagnosis.region import Region
from conrepair.localization.diagnosis.steps import MOVES

__all__ = ["RecurrentForm", "form_of", "recurrent_findings"]


@dataclass(frozen=True)
class RecurrentForm:
    """What the source's layer would have to be, to give what the target computes.

    Attributes:
        words: In which it's said.
        node: The source's.
        right: That, for each direction.
        wrong: What it would be.
    """

    words: str
    node: Node
    right: Layers
    wrong: Layers


def recurrent_findings(region: Region) -> Iterator[Finding]:
    """What became of the source's layer: the form of it that gives what the target computes, or numbers that differ.

    Args:
        region: Guilty, with one recurrent layer in the source.
    """
    run = RecurrentRun.of(region)
    form = None if run is None else _form(run)
    if form is not None:
        yield _finding(region, form)
        return
    found = recurrent_layer(region.source.nodes)
    differing = [] if found is None else list(gate_differences(*found, region.target.nodes))
    if differing or run is None or (form := _scaled(run)) is None:
        yield from differing
    else:
        yield _finding(region, form)


def form_of(region: Region) -> RecurrentForm | None:
    """The form of the source's layer that gives what the target computes.

    The layer is computed in NumPy as it is, which must give the source's result; then in forms that conversions give
    it by mistake. That needs no look at how the target writes it: as a loop, unrolled, or as one operator.

    Args:
        region: Guilty, with one recurrent layer in the source.

    Returns:
        None where no form does.
    """
    run = RecurrentRun.of(region)
    return None if run is None else _form(run)


def _form(run: RecurrentRun) -> RecurrentForm | None:
    forms = itertools.chain(_exchanged(run.layers), _changed(run.layers))
    return next(
        (RecurrentForm(words, run.node, run.layers, wrong) for words, wrong in forms if run.gives(wrong)), None
    )


def _changed(layers: Layers) -> Iterator[tuple[str, Layers]]:
    """Forms of both directions, and of one of them, in words."""
    for forms in zip(*map(wrong_forms, layers), strict=True):
        for changed in _choices(layers):
            other = tuple(forms[at][1] if at in changed else layer for at, layer in enumerate(layers))
            yield forms[0][0] + _where(changed, layers), other


def _choices(layers: Layers) -> Sequence[range]:
    """Which directions may be changed: all, or one."""
    return [range(len(layers))] if len(layers) == 1 else [range(2), range(1), range(1, 2)]


def _where(changed: range, layers: Layers) -> str:
    return "" if len(changed) == len(layers) else f", in the {WAYS[changed[0]]} direction"


def _exchanged(layers: Layers) -> Iterator[tuple[str, Layers]]:
    """The two directions, or one sort of their numbers, in each other's place."""
    if len(layers) != len(WAYS) or layers[0].weight.shape != layers[1].weight.shape:
        return
    one, two = layers
    yield "the directions are exchanged", (two, one)
    sorts = {"the numbers": tuple(PARTS)} | {words.rsplit(" ", 1)[0]: (name,) for name, words in PARTS.items()}
    for what, names in sorts.items():
        parts = [{name: getattr(layer, name) for name in names} for layer in (two, one)]
        yield f"{what} of both directions are exchanged", (replace(one, **parts[0]), replace(two, **parts[1]))


def _scaled(run: RecurrentRun) -> RecurrentForm | None:
    """The form where one of its parameters is times a number, which is looked for."""
    from scipy.optimize import minimize_scalar  # takes half a second to import

    for (name, role), changed in itertools.product(PARTS.items(), _choices(run.layers)):

        def scaled(factor: float, name: str = name, changed: range = changed) -> Layers:
            return tuple(
                replace(layer, **{name: factor * getattr(layer, name)}) if place in changed else layer
                for place, layer in enumerate(run.layers)
            )

        def squared(factor: float, scaled: Callable[[float], Layers] = scaled) -> float:
            return run.error(scaled(factor)) ** 2

        factor = float(minimize_scalar(squared, (0.5, 1.5), method="brent").x)
        if squared(factor) <= run.close**2:
            words = f"{role} scaled by {factor:.4g}{_where(changed, run.layers)}"
            return RecurrentForm(words, run.node, run.layers, scaled(factor))
    return None


def _finding(region: Region, form: RecurrentForm) -> Finding:
    nodes = [item for item in region.target.nodes if item.op not in {*MOVES, "Slice"}]
    changed = {place for place, (one, two) in enumerate(zip(form.right, form.wrong, strict=True)) if one is not two}
    held = {item.node.name for item in carried_gates(form.wrong, form.wrong, nodes) if item.direction in changed}
    first = sorted(nodes, key=lambda item: (item.name not in held, not item.parameters))
    target = (*(item.layer for item in first), *region.target.layers)
    return Finding(
        Kind.PARAMETERS if _options(form.wrong) == _options(form.right) else Kind.HYPERPARAMETERS,
        f"the target computes what the {form.node.op} `{form.node.layer}` does where {form.words}",
        (form.node.layer, *region.source.layers),
        target,
        rule=form.words,
    )


def _options(layers: Layers) -> list[tuple[object, ...]]:
    return [(layer.activations, layer.reverse, layer.linear_before_reset) for layer in layers]
