"""Chains of fifty layers and more."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.judges.network import Draw, Maker, Network, Writer

__all__ = ["DEEP"]

_WIDTH = 8
_Layer = Callable[[Writer, str], str]


def _chain(depth: int, layer: _Layer) -> Maker:
    """The same sort of layer again and again."""

    def make(draw: Draw) -> Network:
        net = Writer(draw)
        x = net.normal(_WIDTH)
        for _ in range(depth):
            x = layer(net, x)
        return net.ended((net.dense(x, _WIDTH, 4), (4,)))

    return make


def _tanh(net: Writer, x: str) -> str:
    return net.add("Tanh", net.dense(x, _WIDTH, _WIDTH, spread=0.5))


def _residual(net: Writer, x: str) -> str:
    return net.add("Add", x, net.dense(net.add("Relu", x), _WIDTH, _WIDTH, spread=0.05))


def _normalized(net: Writer, x: str) -> str:
    inner = net.add("Relu", net.dense(net.normalized(x, _WIDTH), _WIDTH, _WIDTH))
    return net.add("Add", x, inner)


def _behind_normalization(net: Writer, x: str) -> str:
    return net.normalized(net.add("Add", x, net.add("Sigmoid", net.dense(x, _WIDTH, _WIDTH))), _WIDTH)


def _leaky(net: Writer, x: str) -> str:
    return net.add("LeakyRelu", net.dense(x, _WIDTH, _WIDTH, spread=0.45), alpha=0.3)


def _waves(net: Writer, x: str) -> str:
    return net.add("Sin", net.dense(x, _WIDTH, _WIDTH, spread=0.9))


def _pictures(depth: int) -> Maker:
    def make(draw: Draw) -> Network:
        net, width = Writer(draw), 4
        x = net.normal(width, 6, 6)
        for _ in range(depth):
            x = net.add("Add", x, net.add("Tanh", net.conv(x, width, width)))
        return net.ended((net.dense(net.add("Flatten", net.add("GlobalAveragePool", x)), width, 4), (4,)))

    return make


DEEP: dict[str, Maker] = {
    "tanh-chain-50": _chain(50, _tanh),
    "tanh-chain-200": _chain(200, _tanh),
    "residual-chain-100": _chain(100, _residual),
    "normalized-chain-40": _chain(40, _normalized),
    "normalized-chain-60": _chain(60, _behind_normalization),
    "leaky-chain-80": _chain(80, _leaky),
    "sine-chain-50": _chain(50, _waves),
    "picture-chain-50": _pictures(50),
}
"""By name; the number says how many layers, each of two to four operators."""
