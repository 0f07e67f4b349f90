"""What was learned of ONNX's own cases, kept beside this module.

`python -m conrepair.generate.learned.cases` makes it anew.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from conrepair.generate.learned.instances import Instance, instances_of, text_of
from conrepair.generate.learned.node_cases import cases
from conrepair.generate.learned.still import still_cases
from conrepair.generate.learned.trying import tried

__all__ = ["case_instances", "harvested_cases"]

_KEPT = Path(__file__).parent / "onnx_cases.json.gz"

_OF_EACH = 16
"""Instances that an operator has; ONNX has up to 80 cases of one."""


def case_instances() -> tuple[Instance, ...]:
    """Those that are kept."""
    return instances_of(gzip.decompress(_KEPT.read_bytes()).decode())


def harvested_cases() -> tuple[Instance, ...]:
    """Look at all cases of the ONNX that is installed, with the ONNX Runtime that is installed."""
    found: dict[str, list[Instance]] = {}
    for op, name, case in (*still_cases(), *cases()):
        item = tried(op, case, name)
        if item is not None:
            found.setdefault(op, []).append(item)
    return tuple(item for op in sorted(found) for item in _spread(found[op]))


def _spread(items: list[Instance]) -> list[Instance]:
    """Some of them, from all over the list; each graph once."""
    different = list({json.dumps(item.graph, sort_keys=True): item for item in items}.values())
    step = max(1.0, len(different) / _OF_EACH)
    return [different[int(place * step)] for place in range(min(_OF_EACH, len(different)))]


if __name__ == "__main__":
    _KEPT.write_bytes(gzip.compress(text_of(harvested_cases()).encode(), mtime=0))
