"""Which of ONNX's operators take part: `python -m benchmarks.generate.operators [--opset 20]`.

Those of the default domain that aren't deprecated; by their specification, or as they are in ONNX's own cases.
"""

from __future__ import annotations

import argparse

import onnx

from conrepair_lab.generate.learned.cases import case_instances
from conrepair_lab.generate.specifications.specification import specifications

__all__ = ["MISSING", "learned_operators", "missing", "standard_operators"]

MISSING = {
    "CausalConvWithState": "opset 27, which ONNX Runtime doesn't have yet",
    "ImageDecoder": "ONNX Runtime has no kernel: its bytes are those of an image file",
    "LinearAttention": "opset 27, which ONNX Runtime doesn't have yet",
    "SwiGLU": "opset 28, which ONNX Runtime doesn't have yet",
}
"""By operator that takes no part, why."""


def standard_operators() -> frozenset[str]:
    """All of the default domain that aren't deprecated."""
    schemas = onnx.defs.get_all_schemas()
    return frozenset(item.name for item in schemas if item.domain == "" and not item.deprecated)


def learned_operators(opset: int | None = None) -> frozenset[str]:
    """Those that instances have, with an opset, or with any."""
    items = [item for item in case_instances() if opset is None or opset in item.opsets]
    return frozenset().union(*(item.piece.operators for item in items))


def missing(opset: int | None = None) -> list[str]:
    """Those that take no part, with an opset, or with any."""
    known = {name for name, item in specifications().items() if opset is None or item.least_opset <= opset}
    return sorted(standard_operators() - known - learned_operators(opset))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--opset", type=int, help="of models (default: any)")
    opset = parser.parse_args().opset
    every, left = standard_operators(), missing(opset)
    specified = every & specifications().keys()
    print(f"{len(every)} operators; {len(specified)} specified; {len(every) - len(left)} take part")
    print("learned alone:", ", ".join(sorted((learned_operators(opset) & every) - specified)))
    for name in left:
        since = min(item.since_version for item in onnx.defs.get_all_schemas_with_history() if item.name == name)
        print(f"    {name}: {MISSING.get(name) or f'no case of opset {opset} (there since {since})'}")


if __name__ == "__main__":
    main()
