"""Whether networks are worth feeding: `python -m benchmarks.generate.worth [--networks 200] [--nodes 10 20 50]`.

A node that depends on no input is folded away by every compiler; an output that stays as it is when all inputs are
drawn anew shows little of what a kernel does; a chain of a few nodes, or tensors of a few elements, meet few kernels
where they fuse, block, tile or use threads. Each network is looked at as `benchmarks.generate.validity` does, too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.generate.validity import Checked, look_at
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.generated import BLOCK, block
from conrepair_lab.generate.graph import Draft
from conrepair_lab.generate.networks import GeneratedNetwork
from conrepair_lab.generate.onnx_form import RefusedError, accepted, run
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.values.drawn import drawn_values
from conrepair_lab.generate.values.search import flaw_of
from conrepair_lab.generate.wishes import Wishes

__all__ = ["Worth", "worth"]

_WISHED = ("single", "deep", "folded", "large", "woven")
_FEW, _SMALL, _LARGE = 8, 1100, 10_000


@dataclass
class Worth:
    """What was found of some networks.

    Attributes:
        nodes: How many there are.
        folded: Those that depend on no input.
        outputs: How many there are.
        moving: Those that are others when all inputs are drawn anew.
        still: Networks without such an output.
        refused: Networks that aren't computed with other inputs.
        flawed: Networks of which other inputs make something that isn't finite.
        chains: Of each network, how many nodes read one another in a row.
        elements: Of each tensor that nodes make.
        seconds: Processor seconds of each network, values included.
    """

    nodes: int = 0
    folded: int = 0
    outputs: int = 0
    moving: int = 0
    still: int = 0
    refused: int = 0
    flawed: int = 0
    chains: list[int] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, network: GeneratedNetwork, generator: np.random.Generator) -> None:
        """Look at a network.

        Args:
            network: With its values.
            generator: Other inputs come from here.
        """
        draft, inputs = network.draft, network.inputs
        self.nodes += len(draft.nodes)
        self.folded += sum(not _reads(draft, inputs)[name] for name in _firsts(draft))
        self.chains.append(_chain(draft))
        self.elements += [array.size for array in network.values.computed.values()]
        made = {name: draft.sources[name] for name in inputs}
        feeds = {
            name: drawn_values(tensor.type, tensor.values, generator, tensor.wish) for name, tensor in made.items()
        }
        self.outputs += len(network.answers)
        try:
            others = run(network.model, feeds, draft.outputs())
        except RefusedError:
            self.refused += 1
            return
        moving = sum(not np.array_equal(array, others[name]) for name, array in network.answers.items())
        self.moving += moving
        self.still += not moving
        self.flawed += any(map(flaw_of, others.values()))

    def rows(self) -> dict[str, str]:
        """A table's cells, by what they're of."""
        elements = np.array(self.elements)
        return {
            "nodes without an input": f"{self.folded / self.nodes:.1%}",
            "outputs that move": f"{self.moving / self.outputs:.1%}",
            "networks where none does": str(self.still),
            "longest chain, median (most)": f"{statistics.median(self.chains):g} ({max(self.chains)})",
            f"tensors of at most {_FEW} elements": f"{(elements <= _FEW).mean():.1%}",
            f"below {_SMALL:,}": f"{(elements < _SMALL).mean():.1%}",
            f"at least {_LARGE:,}": f"{(elements >= _LARGE).mean():.1%}",
            "not finite with other inputs": str(self.flawed),
            "not computed with other inputs": str(self.refused),
            "milliseconds, median (mean)": f"{1e3 * statistics.median(self.seconds):.1f} "
            f"({1e3 * sum(self.seconds) / len(self.chains):.1f})",
        }


def worth(wishes: Wishes, networks: int, seed: int) -> dict[str, str]:
    """Make networks, and look at each.

    Args:
        wishes: What they should be like.
        networks: How many.
        seed: Of what's drawn.
    """
    support = Probed(wishes.opset, accepted)
    for op in wishes.names:
        support.ask(op)
    found, checked, seen = Worth(), Checked(), Diversity(wishes.names)
    generator = np.random.default_rng(seed)
    for number in range(-(-networks // BLOCK)):
        made = block(wishes, seed, number, support, min(BLOCK, networks - number * BLOCK))
        while True:
            started = time.process_time()
            network = next(made, None)
            if network is None:
                break
            found.seconds.append(time.process_time() - started)
            if isinstance(network, GeneratedNetwork):
                seen.add(network.draft)
                found.add(network, generator)
                look_at(network, wishes, checked, f"{seed}/{number}")
    checked.listed()
    return {
        "networks": str(checked.networks or len(found.chains)),
        **found.rows(),
        "invalid": str(checked.faults.total()),
        "edge, settings, structural": f"{seen.edge:.3f}, {sum(map(len, seen.settings.values())):,}, "
        f"{seen.structural:.3f}",
    }


def _firsts(draft: Draft) -> list[str]:
    """Of each node, a tensor that it makes."""
    return [next(filter(None, node.outputs)) for node in draft.nodes]


def _reads(draft: Draft, inputs: Sequence[str] | dict[str, np.ndarray]) -> dict[str, bool]:
    """By tensor, whether it depends on an input."""
    found = {name: name in inputs for name in draft.tensors}
    for node in draft.nodes:
        found.update(dict.fromkeys(node.outputs, any(found[name] for name in node.inputs if name)))
    return found


def _chain(draft: Draft) -> int:
    """How many nodes read one another in a row, at most."""
    length: dict[str, int] = {}
    for node in draft.nodes:
        own = 1 + max((length.get(name, 0) for name in node.inputs), default=0)
        length.update(dict.fromkeys(node.outputs, own))
    return max(length.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=200)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--single", action="store_true")
    for name in ("deep", "folded", "large", "woven"):
        parser.add_argument(f"--{name}", type=float, default=getattr(Wishes, name, None))
    arguments = parser.parse_args()
    shares = {name: value for name, value in vars(arguments).items() if name in _WISHED and value is not None}
    columns = [worth(Wishes(nodes=nodes, **shares), arguments.networks, arguments.seed) for nodes in arguments.nodes]
    for name in columns[0]:
        print(" | ".join(["", name, *(column[name] for column in columns), ""]).strip())


if __name__ == "__main__":
    main()
