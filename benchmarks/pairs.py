"""Which tensors of two networks are paired, rightly or not, and what told so.

    python -m benchmarks.pairs [--seeds development|reporting] [--first N] [--quantized]

Targets are networks of attention (`benchmarks.attention`) with one fault in one block or in all of them, which keep
their tensors' names: a pair of two names is wrong where the target has a tensor of the source's name, too. Faults
that exchange two branches are left out: each has the other one's names then. What told of a pair is counted by the
words that it has as evidence. Without --quantized values are compared as of a target that computes with real numbers.
Returns 1 where more than 0.3 % of the pairs are wrong.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnx

from benchmarks.attention.faults.catalogue import FAULTS, put_in
from benchmarks.attention.networks import build
from benchmarks.attention.samples import samples
from benchmarks.attention.spec import networks, writing_of
from benchmarks.common.running import SEEDS
from conrepair.diagnosis.localization.align.alignment import Alignment, align
from conrepair.diagnosis.localization.run.activations import Activations
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.formats.networks.network import open_network

_WRONG = 0.003  # of all pairs
_COUNT = 4  # samples


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", choices=sorted(SEEDS), default="development")
    parser.add_argument("--first", type=int, help="only so many cases")
    parser.add_argument("--quantized", action="store_true", help="as targets whose values are never quite right")
    options = parser.parse_args()
    counts, told, seconds = Counter[str](), Counter[str](), 0.0
    cases = [
        (spec, fault, place, every)
        for seed in SEEDS[options.seeds]
        for spec in networks(seed)
        for place, fault in enumerate(name for name in FAULTS if "exchanged" not in name)
        for every in ([place % 2 == 0] if not FAULTS[fault].shared else [True])
    ]
    for spec, fault, number, every in cases[: options.first]:
        writing = writing_of(spec, 0)
        right = build(spec, writing)
        blocks = list(range(spec.blocks)) if every else [number % spec.blocks]
        wrong = put_in(FAULTS[fault], right, spec, writing, blocks, number)
        if wrong is None:
            continue
        feeds = samples(spec, _COUNT)
        with tempfile.TemporaryDirectory() as folder:
            sides = []
            for name, graph in (("source", right), ("target", wrong)):
                path = Path(folder) / f"{name}.onnx"
                onnx.save(graph.model(constant_nodes=writing.constant_nodes), path)
                model = Model("onnx", str(path), model_sha256(path))
                sizes = [
                    replace(item, shape=feeds[item.name].shape) for item in framework("onnx").describe(model).inputs
                ]
                network = open_network(model, sizes)
                sides.append(Activations(network, feeds, Path(folder) / name))
            started = time.process_time()
            found = align(sides[0], sides[1], Path(folder), quantized=options.quantized)
            seconds += time.process_time() - started
        here = _counted(found, told)
        counts += here
        print(f"{spec.name} {fault}: {dict(here)}", file=sys.stderr)
    for title, table in (("pairs", counts), ("told by", told)):
        print(f"| {title} | tensors |\n|---|---:|")
        print("".join(f"| {name} | {count} |\n" for name, count in table.most_common()))
    print(f"{seconds:.1f} s of the processor for aligning")
    return int(counts["wrong"] > _WRONG * (counts["right"] + counts["wrong"]))


def _counted(found: Alignment, told: Counter[str]) -> Counter[str]:
    """How many pairs are right, how many tensors have none; what told of each is added to `told`."""
    common = set(found.sources) & set(found.targets)
    counts = Counter(none=len(common - {pair.source for pair in found.pairs}))
    for pair in found.pairs:
        right = pair.source == pair.target or pair.source not in common or pair.target not in common
        counts["right" if right else "wrong"] += 1
        told[pair.evidence.partition(" (")[0] + ("" if right else ", wrongly")] += 1
        if not right:
            print(f"  {pair.source} ~ {pair.target}: {pair.evidence}", file=sys.stderr)
    return counts


if __name__ == "__main__":
    sys.exit(main())
