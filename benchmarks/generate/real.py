"""Whether networks grown from real ones are valid: `python -m benchmarks.generate.real MODEL ... [--networks 200]`.

Each goes through what `benchmarks.generate.validity` looks at. A fault ends in exit code 1.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
from pathlib import Path
from random import Random

from benchmarks.generate.validity import Checked, look_at
from conrepair_lab.generate.diversity import Diversity
from conrepair_lab.generate.networks import Material, NotMadeError, made
from conrepair_lab.generate.onnx_form import accepted
from conrepair_lab.generate.real.growth import GrowingModel
from conrepair_lab.generate.real.opened import opened
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

__all__: list[str] = []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--networks", type=int, default=200)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--opset", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    support, wrong = Probed(arguments.opset, accepted), False
    wishes = Wishes(nodes=arguments.nodes, changes=arguments.changes, opset=arguments.opset)
    for path in arguments.models:
        material = Material(reals=(GrowingModel(opened(path, arguments.opset)),))
        seen, result, changes = Diversity(wishes.names), Checked(), collections.Counter[str]()
        opaque = nodes = 0
        for index in range(arguments.networks):
            started = time.process_time()
            try:
                network = made(wishes, Random(f"{arguments.seed}/{index}"), support, seen, material)
            except NotMadeError:
                result.refused += 1
                continue
            finally:
                result.seconds += time.process_time() - started
            result.networks += 1
            nodes += len(network.draft.nodes)
            opaque += sum(node.piece is not None for node in network.draft.nodes)
            changes.update(network.changes)
            if len(network.changes) < arguments.changes:
                result.faults["fewer changes"] += 1
            look_at(network, wishes, result, f"{path.name}/{index}")
        wrong |= bool(result.faults.total() or result.refused)
        print(
            f"{path.name}: {result.networks} networks, {result.refused} refused, faults {result.faults.total()}, "
            f"{result.milliseconds:.0f} ms each; {nodes} nodes, {opaque} as they were; "
            f"{len(result.findings)} findings; changes {dict(changes.most_common())}"
        )
        result.listed()
    sys.exit(wrong)


if __name__ == "__main__":
    main()
