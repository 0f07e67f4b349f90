"""A product whose operands have changed places: queries for keys."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from conrepair.graph.kinds import Kind
from conrepair.graph.layer_graph import LayerGraph, Node
from conrepair.localization.diagnosis.attention import gives_scores
from conrepair.localization.diagnosis.finding import Finding
from conrepair.localization.diagnosis.region import Region
from conrepair.localization.diagnosis.steps import MOVES

__all__ = ["crossed_products", "exchanged_operands"]

_NEAR = 4  # operators between a product and a piece that reads it
_MOST = 32  # operators of a branch
_LAYERS = {"MatMul", "Gemm", "Dense", "Conv"}


@dataclass(frozen=True)
class _Branch:
    """What one operand of a product is computed by, and not the other one.

    Attributes:
        tensors: All of them, the operand first.
        nodes: In the graph's order; from the last layer with weights on.
    """

    tensors: tuple[str, ...]
    nodes: tuple[Node, ...]

    @property
    def moves(self) -> list[tuple[str, object]]:
        """How it moves values."""
        return [(node.op, node.attributes.get("perm")) for node in self.nodes if node.op in MOVES]


def exchanged_operands(region: Region) -> Iterator[Finding]:
    """Products in a piece, or just in front of it, whose operands come from where the source's other ones do.

    A product of exchanged operands is the right one with its axes in another order, so all that lies before it has
    its partner, and only what reads it is wrong; where it's turned back at once, nothing is.
    """
    for product, theirs, ours in _crossed(region):
        yield _finding(product, region.target.graph, theirs, ours)


def crossed_products(region: Region) -> Iterator[Node]:
    """The same products of the target, each once."""
    yield from {product.name: product for product, _, _ in _crossed(region)}.values()


def _crossed(region: Region) -> Iterator[tuple[Node, tuple[_Branch, _Branch], tuple[_Branch, _Branch]]]:
    ours = [_branches(node, region.source.graph) for node in _products(region.source.graph, region.source.end)]
    for product in _products(region.target.graph, region.target.end):
        if any(node.op == "Transpose" for node in region.target.graph.consumers.get(product.outputs[0], ())):
            continue
        theirs = _branches(product, region.target.graph)
        origins = [{region.partners.get(name) for name in branch.tensors} for branch in theirs]
        for branches in ours:
            straight = any(origin & {*branch.tensors} for origin, branch in zip(origins, branches, strict=True))
            crossed = any(origin & {*branch.tensors} for origin, branch in zip(origins, branches[::-1], strict=True))
            if crossed and not straight:
                yield product, theirs, branches


def _finding(product: Node, graph: LayerGraph, theirs: Sequence[_Branch], ours: Sequence[_Branch]) -> Finding:
    """Named where the branches begin if each moves values as the source's does there, else at the product."""
    begins = [branch.nodes[0].layer if branch.nodes else product.layer for branch in theirs]
    moves = [branch.moves for branch in theirs]
    from_the_start = moves[0] != moves[1] and moves == [branch.moves for branch in ours]
    layers = [*begins, product.layer] if from_the_start else [product.layer, *begins]
    words, rule = (
        f"the operands of `{product.layer}` are exchanged",
        f"the operands of {product.native} are exchanged",
    )
    if gives_scores(product, graph):
        rule = "queries and keys are exchanged"
        words = f"{rule}: `{product.layer}` has its operands exchanged"
    if from_the_start:
        words += f": `{begins[0]}` and `{begins[1]}` read what the other one should"
    sources = tuple(branch.nodes[0].layer for branch in ours if branch.nodes)
    return Finding(
        Kind.GRAPH,
        words,
        sources,
        tuple(layers),
        f"exchanged {product.layer}",
        rule=rule,
    )


def _products(graph: LayerGraph, end: str) -> Iterator[Node]:
    """Products of two tensors that a tensor is computed from, by few operators."""
    ahead, seen = [end], {end}
    for _ in range(_NEAR + 1):
        nodes = [graph.producers[name] for name in ahead if name in graph.producers]
        yield from filter(_is_product, nodes)
        read = dict.fromkeys(name for node in nodes for name in node.inputs if name)
        ahead = [name for name in read if name not in seen]
        seen.update(ahead)


def _is_product(node: Node) -> bool:
    return node.op == "MatMul" and len(set(filter(None, node.inputs))) == 2


def _branches(product: Node, graph: LayerGraph) -> tuple[_Branch, _Branch]:
    one, two = (_tensors(name, graph) for name in filter(None, product.inputs))
    return _branch(one, two, graph), _branch(two, one, graph)


def _branch(tensors: Sequence[str], others: Collection[str], graph: LayerGraph) -> _Branch:
    own = tuple(name for name in tensors if name not in others)
    nodes = [graph.producers[name] for name in sorted(own, key=graph.order.__getitem__)]
    alone = [node for node in nodes if not _weighted(node, graph) and not {*node.outputs} & {*others}]
    return _Branch(own, tuple(alone))


def _tensors(end: str, graph: LayerGraph) -> tuple[str, ...]:
    """What a tensor is computed from, back to layers with weights."""
    found = dict.fromkeys([end])
    ahead = [end]
    while ahead and len(found) < _MOST:
        node = graph.producers.get(ahead.pop(0))
        if node is None or _weighted(node, graph):
            continue
        new = [name for name in node.inputs if name in graph.producers and name not in found]
        found |= dict.fromkeys(new)
        ahead += new
    return tuple(found)


def _weighted(node: Node, graph: LayerGraph) -> bool:
    """Whether it's a layer that mixes channels, or adds the bias of one."""
    if node.op in _LAYERS or not node.parameters:
        return node.op in _LAYERS and bool(node.parameters)
    before = graph.producers.get(node.inputs[0])
    return node.op == "Add" and before is not None and before.op in _LAYERS and bool(before.parameters)
