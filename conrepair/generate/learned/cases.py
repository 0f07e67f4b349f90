"""What was learned of ONNX's own cases, kept beside this module.

`python -m conrepair.generate.learned.cases` makes it anew.
"""

from __future__ import annotations

import gzip
from pathlib import Path

from conrepair.generate.learned.instances import Instance, instances_of, spread, text_of_instances
from conrepair.generate.learned.node_cases import cases
from conrepair.generate.learned.still import still_cases
from conrepair.generate.learned.trying import tried

__all__ = ["case_instances", "harvested_cases"]

_KEPT = Path(__file__).parent / "onnx_cases.json.gz"


def case_instances() -> tuple[Instance, ...]:
    """Those that are kept."""
    return instances_of(gzip.decompress(_KEPT.read_bytes()).decode())


def harvested_cases() -> tuple[Instance, ...]:
    """Look at all cases of the ONNX that is installed, with the ONNX Runtime that is installed."""
    found: list[Instance] = []
    for op, name, case in (*still_cases(), *cases()):
        item = tried(op, case, name)
        if item is not None:
            found.append(item)
    return spread(found)


if __name__ == "__main__":
    _KEPT.write_bytes(gzip.compress(text_of_instances(harvested_cases()).encode(), mtime=0))
