"""Two tensors that a piece takes for one another: proven by giving it each in the other's place."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from conrepair.diagnosis.localization.align.layout import Layout
from conrepair.diagnosis.localization.faces.changes import Exchange, exchanged_pieces
from conrepair.diagnosis.localization.faces.region import Finding, Region, Side, error_in, left_of
from conrepair.diagnosis.localization.faces.steps.folding import LINEAR
from conrepair.diagnosis.localization.faces.wiring import wiring_findings
from conrepair.ground.graph.kinds import Kind
from conrepair.ground.graph.layer_graph import Array, LayerGraph, Node

_MOST = 15  # pairs of tensors that are tried: all of six
_MOST_LAYERS = 6  # pairs of layers: all of four
_FAR = 16  # operators between the layers and a piece, or between them and where both come together
_ENDS = 4  # tensors that are looked at there
_NEAR = 5  # operators between a product and a piece that reads it, with the product
_ROLES = ("queries", "keys", "values")  # in the order of operators that compute attention as a whole
_WHOLE = {"Attention", "ScaledDotProductAttention"}
_NEXT = 6  # operators between a product and its softmax: a scale, a mask, casts


def fixing_exchange(region: Region) -> Exchange | None:
    """Find the two tensors by running the piece with each in the other's place.

    However the piece is written, with the right exchange it gives the source's result.

    Args:
        region: Guilty.
    """
    if region.expected.shape != region.computed.shape:
        return None
    for one, two in itertools.islice(_alike(region), _MOST):
        if _is_right(region, _exchanged(region, one, two), region.target.end):
            return Exchange(one, two, tuple(node for node in region.target.nodes if {one, two} & {*node.inputs}))
    return None


def _exchanged(region: Region, one: str, two: str) -> Callable[[str], Array]:
    """What cuts are fed where two are each fed what the other one holds, in its own layout."""
    other = {one: two, two: one}

    def fed(name: str) -> Array:
        if name not in other:
            return region.fed(name)
        given = other[name]
        return region.layouts[name].to_target(region.layouts[given].to_source(region.fed(given)))

    return fed


def _is_right(region: Region, fed: Callable[[str], Array], end: str, uncut: Collection[str] = ()) -> bool:
    """Whether a tensor comes out right by what cuts are fed, and isn't as it is.

    Args:
        region: Whose cuts they are.
        fed: What they are fed.
        end: What is computed.
        uncut: See `Isolation.trial`.
    """
    layout, expected = region.layout, region.expected
    if end != region.target.end:
        layout, found = region.layouts[end], region.value(region.partners[end])
        if found is None:
            return False
        expected = found
    error = error_in(layout, expected, region.trial(end, fed, uncut))
    return error <= left_of(error_in(layout, expected, region.trial(end, region.fed, uncut)))


def exchange_findings(region: Region) -> Iterator[Finding]:
    """The finding of an exchange of tensors that fixes a segment."""
    exchange = fixing_exchange(region)
    if exchange is None:
        return
    roles = _roles_of(region.target)
    named = sorted((roles[name] for name in (exchange.one, exchange.two) if name in roles), key=_ROLES.index)
    in_roles = len({*named}) > 1
    if not in_roles and any(item.cause.startswith("order ") for item in wiring_findings(region)):
        return  # the operator that reads both says it in its own words
    what = " and ".join(named) if in_roles else "two tensors"
    readers = [
        _names([node for node in exchange.readers if name in node.inputs]) for name in (exchange.one, exchange.two)
    ]
    if readers[0] == readers[1]:
        where = f"{readers[0]} reads `{exchange.one}` and `{exchange.two}` in the wrong order"
    else:
        where = f"{readers[0]} reads `{exchange.one}` in place of `{exchange.two}`, which {readers[1]} reads"
    words = f"{what} are exchanged: {where}; with that undone, the result is the original's"
    at_input = all(name in region.target.graph.inputs for name in (exchange.one, exchange.two))
    layers = tuple(node.layer for node in exchange.readers)
    yield Finding(
        Kind.INPUT if at_input else Kind.GRAPH,
        words,
        region.source.layers,
        layers,
        f"exchanged {exchange.one} {exchange.two}",
        rule=f"{what} are exchanged",
    )


def _alike(region: Region) -> Iterator[tuple[str, str]]:
    """Pairs of the tensors in front of a piece that can stand for one another."""
    tensors = region.target.graph.tensors
    begins = [name for name in region.target.begins if name in region.layouts and tensors[name].is_real]
    for one, two in itertools.combinations(begins, 2):
        if tensors[one].dtype == tensors[two].dtype and region.layouts[one].source == region.layouts[two].source:
            yield one, two


def _names(nodes: Sequence[Node]) -> str:
    return " and ".join(dict.fromkeys(f"`{node.layer}`" for node in nodes))


# Two layers of one tensor that have each other's weights: each gives what the other one should. So all that they
# compute has a partner, crosswise, and only what reads them is wrong: up to where both come together, which is right
# with each result in the other's place.


def exchanged_layer_findings(region: Region) -> Iterator[Finding]:
    """The finding of an exchange of two layers' weights that fixes the layer that reads both."""
    exchange = exchanged_layers(region)
    if exchange is None:
        return
    producers = region.target.graph.producers
    layers = tuple(producers[name].layer for name in (exchange.one, exchange.two))
    partners = (region.partners.get(name, region.source.end) for name in (exchange.two, exchange.one))
    sources = [region.source.graph.producers.get(name) for name in partners]
    words = (
        f"the weights of `{layers[0]}` and `{layers[1]}` are exchanged: with their results exchanged, too, the layer "
        "that reads both gives the original's result"
    )
    ours = tuple(node.layer for node in sources if node is not None)
    rule = "the weights of two layers are exchanged"
    yield Finding(Kind.PARAMETERS, words, ours, layers, f"exchanged {layers}", rule=rule)


def exchanged_layers(region: Region) -> Exchange | None:
    """Find two layers that read the same tensor, or lie in the piece, and give each what the other one should.

    Args:
        region: Guilty: between them and where both come together.
    """
    graph = region.target.graph
    for one, two in itertools.islice(_siblings(region), _MOST_LAYERS):
        names = (one.outputs[0], two.outputs[0])
        behind = _behind(graph, names)
        own = [node for node in behind if {*names} & {*node.inputs}]
        if not any(node.outputs[0] == region.target.end for node in behind):
            continue
        uncut = {name for node in behind for name in node.outputs}
        fed = _exchanged(region, *names)
        if any(_is_right(region, fed, end, uncut) for end in _ends(region, names, behind)):
            return Exchange(*names, tuple(own))
    return exchanged_pieces(region)


def _siblings(region: Region) -> Iterator[tuple[Node, Node]]:
    """Layers of the same tensor in front of a piece, whose results could stand for one another."""
    graph = region.target.graph
    before = list(itertools.islice(graph.nearest([region.target.end]), _FAR))
    readers = dict.fromkeys(name for node in before if node.op in LINEAR for name in node.inputs)
    for name in readers:
        layers = [node for node in graph.consumers.get(name, ()) if _is_layer(node, region)]
        for one, two in itertools.combinations(layers, 2):
            layouts = [region.layouts[node.outputs[0]] for node in (one, two)]
            if layouts[0] == layouts[1] and (one in before or two in before):
                yield one, two


def _is_layer(node: Node, region: Region) -> bool:
    return node.op in LINEAR and "weight" in node.parameters and node.outputs[0] in region.layouts


def _behind(graph: LayerGraph, names: Sequence[str]) -> list[Node]:
    """The nearest of what's computed from tensors, in the graph's order."""
    found = itertools.islice(graph.nearest(names, forward=True), 2 * _FAR)
    return sorted(found, key=lambda node: graph.order[node.outputs[0]])


def _ends(region: Region, names: Sequence[str], behind: Sequence[Node]) -> list[str]:
    """Known tensors that both results come together in, from the piece's end on."""
    graph = region.target.graph
    feeding, begin = graph.feeding(names), graph.order[region.target.end]
    ends = (node.outputs[0] for node in behind if len(feeding[node.outputs[0]]) == len(names))
    return [name for name in ends if name in region.partners and graph.order[name] >= begin][:_ENDS]


# A product whose operands have changed places is the right one with its axes in another order, so all that lies
# before it has its partner, and what reads it is right where it's fed the source's order.


def crossed_findings(region: Region) -> Iterator[Finding]:
    """The findings of products whose operands are exchanged."""
    for product, source in crossed_products(region):
        words, rule = (f"the operands of {name} are exchanged" for name in (f"`{product.layer}`", product.native))
        if _gives_scores(product, region.target.graph):
            rule = "queries and keys are exchanged"
            words = f"{rule}: `{product.layer}` has its operands exchanged"
        ours, theirs = _with_operands(source, region.source.graph), _with_operands(product, region.target.graph)
        yield Finding(Kind.GRAPH, words, ours, theirs, f"exchanged {product.layer}", rule=rule)


def crossed_products(region: Region) -> Iterator[tuple[Node, Node | None]]:
    """Products of matrices in front of a segment of the target, each with that of the source."""
    for turned in region.target.begins:
        layout, products = (
            region.layouts.get(turned),
            [
                next(filter(_is_product, itertools.islice(side.graph.nearest([name]), _NEAR)), None)
                for side, name in ((region.target, turned), (region.source, region.partners.get(turned, "")))
            ],
        )
        if layout is None or layout.is_plain or layout.source != layout.target or products[0] is None:
            continue
        # What's turned back at once may be turned back wrongly.
        if any(node.op == "Transpose" for node in region.target.graph.consumers[products[0].outputs[0]]):
            continue

        def fed(name: str, turned: str = turned, layout: Layout = layout) -> Array:
            return layout.to_source(region.fed(name)) if name == turned else region.fed(name)

        if _is_right(region, fed, region.target.end):
            yield products[0], products[1]


def _with_operands(product: Node | None, graph: LayerGraph) -> tuple[str, ...]:
    return () if product is None else (product.layer, *map(graph.layer_of, filter(None, product.inputs)))


def _is_product(node: Node) -> bool:
    """Whether a node multiplies two tensors."""
    return node.op == "MatMul" and len(set(filter(None, node.inputs))) == 2


def _gives_scores(node: Node, graph: LayerGraph) -> bool:
    """Whether a product of two tensors is what a softmax makes weights of.

    Args:
        node: Of the graph.
        graph: The network's.
    """
    if not _is_product(node):
        return False
    ahead = list(node.outputs)
    for _ in range(_NEXT):
        readers = [reader for name in ahead for reader in graph.consumers.get(name, ())]
        if any(reader.op == "Softmax" for reader in readers):
            return True
        ahead = [name for reader in readers if reader.op != "MatMul" for name in reader.outputs]
    return False


def _roles_of(side: Side) -> Mapping[str, str]:
    """What attention takes the tensors for that a piece reads; none of those that it doesn't tell.

    Args:
        side: The piece.
    """
    for node in side.nodes:
        if node.op in _WHOLE:
            return dict(zip(filter(None, node.inputs), _ROLES, strict=False))
    origins = {**side.graph.feeding(side.begins), **{name: (name,) for name in side.begins}}
    found: dict[str, str] = {}
    weights: set[str] = set()
    for node in side.nodes:
        read = [{*origins.get(name, ())} for name in node.inputs]
        if _gives_scores(node, side.graph):
            found |= dict.fromkeys(read[0] - read[1], "queries") | dict.fromkeys(read[1] - read[0], "keys")
        elif node.op == "MatMul" and len(read) == 2 and node.inputs[0] in weights:
            found |= dict.fromkeys(read[1] - read[0], "values")
        if node.op == "Softmax" or weights.intersection(node.inputs):
            weights.update(node.outputs)
    return found
