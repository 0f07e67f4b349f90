"""Whether networks are what they should be: `python -m benchmarks.generate.validity [--networks 1000] [--nodes 5]`.

Each network goes through ONNX's checker with full shape inference, through ONNX Runtime with and without
optimizations, and each of its tensors is looked at. Where the optimizations differ or crash, that's a finding, not a
fault of the network: it's listed. A fault ends in exit code 1.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from dataclasses import dataclass, field

import numpy as np
import onnx

from benchmarks.generate.elsewhere import Elsewhere, EndedError
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.forms.form import forms
from conrepair_lab.generate.generated import BLOCK, block
from conrepair_lab.generate.judging import difference
from conrepair_lab.generate.learned.cases import case_instances
from conrepair_lab.generate.learned.placing import Learned
from conrepair_lab.generate.networks import NOTHING, GeneratedNetwork, Material, NotMadeError
from conrepair_lab.generate.onnx_form import RefusedError, accepted, run
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.values.search import flaw_of
from conrepair_lab.generate.wishes import Wishes

__all__ = ["Checked", "checked", "look_at"]


@dataclass
class Checked:
    """What was found of some networks.

    Attributes:
        networks: How many were made.
        refused: How many the runtime refused while they were made.
        seconds: Processor seconds that making them took, values included.
        faults: What was wrong, with how many.
        findings: Where ONNX Runtime's optimizations crash or differ, by network.
        parts: In how many networks a form or pattern is.
        ones: Sizes of computed tensors that are 1, of `sizes`.
        sizes: All sizes of computed tensors.
    """

    networks: int = 0
    refused: int = 0
    seconds: float = 0.0
    faults: collections.Counter[str] = field(default_factory=collections.Counter)
    findings: list[str] = field(default_factory=list)
    parts: collections.Counter[str] = field(default_factory=collections.Counter)
    ones: int = 0
    sizes: int = 0

    @property
    def milliseconds(self) -> float:
        """That making one took."""
        return 1e3 * self.seconds / max(1, self.networks)

    def listed(self) -> None:
        """Print what was wrong, and what was found."""
        for message, count in self.faults.most_common(10):
            print(f"    fault {count}: {message}")
        for message in self.findings[:10]:
            print(f"    finding {message}")


def checked(wishes: Wishes, networks: int, seed: int, material: Material = NOTHING) -> tuple[Checked, Diversity]:
    """Make networks, and look at each.

    Args:
        wishes: What they should be like.
        networks: How many.
        seed: Of what's drawn.
        material: What they're made of besides specifications.
    """
    support = Probed(wishes.opset, accepted)
    for _ in block(wishes, seed + 1, 0, support):  # which element types there are is asked once, and isn't measured
        pass
    result, diversity = Checked(), Diversity(wishes.names)
    for number in range(-(-networks // BLOCK)):
        made = block(wishes, seed, number, support, min(BLOCK, networks - number * BLOCK), material=material)
        while True:
            started = time.process_time()
            network = next(made, "end")
            result.seconds += time.process_time() - started
            if isinstance(network, str):
                break
            if isinstance(network, NotMadeError):
                result.refused += 1
                continue
            result.networks += 1
            diversity.add(network.draft)
            look_at(network, wishes, result, f"{seed}/{number}/{result.networks}")
    return result, diversity


_elsewhere = Elsewhere()
"""Where ONNX Runtime optimizes: that ends its process now and then."""


def look_at(network: GeneratedNetwork, wishes: Wishes, result: Checked, name: str) -> None:
    """Look at one network, and add to what was found.

    Args:
        network: With its values.
        wishes: What it should be like.
        result: Of networks so far.
        name: That findings have.
    """
    draft, model, feeds = network.draft, network.model, network.inputs
    result.parts.update(network.parts)
    if len(draft.nodes) != wishes.nodes and not network.real:
        result.faults["another number of nodes"] += 1
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        result.faults[f"the checker: {str(error)[-160:]}"] += 1
    names = draft.outputs()
    try:
        plain = run(model, feeds, names)
    except RefusedError as error:
        result.faults[f"not computed: {str(error)[-160:]}"] += 1
        return
    for tensor, array in network.values.computed.items():
        result.ones += sum(size == 1 for size in array.shape)
        result.sizes += array.ndim
        if flaw_of(array):
            result.faults[f"not finite: {draft.producers()[tensor].op}"] += 1
        if not draft.tensors[tensor].type.describes(array.dtype.name, array.shape):
            result.faults[f"another shape than predicted: {draft.producers()[tensor].op}, {name}"] += 1
    if any(not np.array_equal(array, network.answers[tensor]) for tensor, array in plain.items()):
        result.faults["other values when it's computed again"] += 1
    try:
        optimized = _elsewhere.call(None, run, model, feeds, names, optimized=True)
    except (EndedError, RefusedError) as error:
        result.findings.append(f"{name}: crash: {str(error)[-160:]}")
        return
    wrong = difference(plain, optimized, network.coarsest)
    if wrong is not None:
        largest = "another shape, or not finite" if wrong.largest is None else f"by {wrong.largest:.3g}"
        result.findings.append(f"{name}: {wrong.output} differs, {plain[wrong.output].dtype}: {largest}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=1000)
    parser.add_argument("--nodes", type=int, nargs="+", default=[5, 10, 20, 50])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, default=20)
    parser.add_argument("--learned", type=float, default=0.0, help="share of operators that are ONNX's own cases")
    arguments = parser.parse_args()
    wrong, share = False, arguments.learned
    material = Material(Learned(case_instances(), share)) if share else NOTHING
    for nodes in arguments.nodes:
        wishes = Wishes(nodes=nodes, opset=arguments.opset)
        result, diversity = checked(wishes, arguments.networks, arguments.seed, material)
        wrong |= bool(result.faults)
        print(
            f"{nodes} nodes: {result.networks} networks, {result.refused} refused, "
            f"{result.milliseconds:.1f} ms each; faults {result.faults.total()}; "
            f"{len(result.findings)} findings; sizes of one {result.ones / max(1, result.sizes):.2f}; operators "
            f"{len(diversity.nodes)} of {len(diversity.operators)}, edge {diversity.edge:.3f}, "
            f"vertex {diversity.vertex:.3f}, structural {diversity.structural:.3f}"
        )
        result.listed()
        shares = {name: result.parts[name] / max(1, result.networks) for name in forms()}
        print("    forms below 2 %:", {name: round(share, 3) for name, share in shares.items() if share < 0.02})
    sys.exit(wrong)


if __name__ == "__main__":
    main()
