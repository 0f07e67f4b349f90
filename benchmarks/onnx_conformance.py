"""ONNX's own single-operator cases through the importer to Keras.

    python -m benchmarks.onnx_conformance [-o docs/measured/onnx-conformance.md] [OPERATOR ...]

The cases are those of `onnx.backend.test` (kind "node") with their expected outputs and tolerances. A case feeds
every input of its operator; inputs that the importer asks to be constant (the shape of a Reshape) are made
initializers, and the others stay inputs. A case whose inputs all had to become initializers is computed while it
is imported, which would say something about ONNX Runtime, so it's counted apart.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import onnx
import onnx_ir
from onnx import numpy_helper

from benchmarks.common.measured import made_by
from benchmarks.common.node_cases import HALF_ULPS, node_cases, operator_of, operator_table
from conrepair.ground.onnx_graphs.defaults import schema_of
from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.files.whole import write_text
from conrepair_onnx_keras.importer.graph import import_model
from conrepair_onnx_keras.importer.node import rules
from conrepair_onnx_keras.importer.values import DTYPES

_CANCELLED = 1e-6
OUTCOMES = ("right", "refused", "wrong", "crashed", "constant", "type", "unknown")


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `kind` is one of OUTCOMES."""

    case: str
    operator: str
    kind: str
    reason: str = ""


def outcomes(operators: set[str]) -> Iterator[Outcome]:
    """Run the cases of some operators (all when empty)."""
    for case in node_cases(expanded=True).values():
        if not operators or operators & {node.op_type for node in case.model.graph.node}:
            kind, reason = _outcome(case)
            yield Outcome(case.name, operator_of(case), kind, reason)


def _has_function(node: onnx_ir.Node, model: onnx_ir.Model) -> bool:
    """Whether ONNX's standard defines the node's operator by a function of others."""
    schema = schema_of(node, model.opset_imports.get(node.domain, 1))
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def _outcome(case: Any) -> tuple[str, str]:
    model = onnx_ir.from_proto(case.model)
    unknown = sorted(
        {
            node.op_type
            for node in model.graph.all_nodes()
            if ("" if node.domain == "ai.onnx" else node.domain, node.op_type) not in rules()
            and not _has_function(node, model)
            and node.inputs
        }
    )
    if unknown:
        return "unknown", ", ".join(unknown)
    foreign = ", ".join(sorted(_foreign_types(case.model)))
    if any(not value.type.HasField("tensor_type") for value in [*case.model.graph.input, *case.model.graph.output]):
        return "type", foreign  # sequences, optional values
    try:
        for inputs, expected in case.data_sets:
            kind, reason = _run(case, [_array(item) for item in inputs], [_array(item) for item in expected])
            if kind != "right":
                return kind, reason
    except ConversionError as error:
        # Types that aren't claimed are tried, too: they must be refused, or right.
        return ("type", foreign) if foreign else ("refused", str(error).replace("\n", " "))
    # Anything else is a defect of the importer, and is counted as one.
    except Exception as error:  # noqa: BLE001
        return "crashed", f"{type(error).__name__}: {str(error).strip()[:200]}".replace("\n", " ")
    return "right", ""


def _run(case: Any, inputs: list[Any], expected: list[Any]) -> tuple[str, str]:
    feeds = dict(zip([value.name for value in case.model.graph.input], inputs, strict=True))
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    while True:
        if not model.graph.input:
            return "constant", ""
        try:
            network = import_model(onnx_ir.from_proto(model))
            break
        except ConversionError as error:
            if not _freeze(model, feeds, str(error)):
                raise
    arrays = [feeds[value.name] for value in model.graph.input]
    found = keras.tree.flatten(network.predict_on_batch(arrays if len(arrays) > 1 else arrays[0]))
    if len(found) != len(expected):
        return "wrong", f"{len(found)} outputs instead of {len(expected)}"
    for one, two in zip(map(np.asarray, found), expected, strict=True):
        if (one.shape, one.dtype) != (two.shape, two.dtype):
            return "wrong", f"{one.dtype}{list(one.shape)} instead of {two.dtype}{list(two.shape)}"
        wide = np.float64 if one.dtype.kind in "fV" else one.dtype
        rtol = max(case.rtol, HALF_ULPS.get(one.dtype.name, 0.0))
        # Sums whose terms cancel carry the rounding of the terms.
        finite = np.abs(two[np.isfinite(two)].astype(wide)) if wide is np.float64 else np.zeros(1)
        atol = max(case.atol, _CANCELLED * float(finite.max(initial=0.0)))
        close = np.allclose(one.astype(wide), two.astype(wide), rtol=rtol, atol=atol, equal_nan=True)
        if not close:
            return "wrong", f"differs by up to {np.nanmax(np.abs(one.astype(float) - two.astype(float))):.2g}"
    return "right", ""


def _freeze(model: onnx.ModelProto, feeds: dict[str, Any], message: str) -> bool:
    """Make the input that a refusal asks for an initializer; False when nothing is left to make constant.

    What is asked for inside a function follows from inputs that aren't named; then it's those of whole numbers.
    """
    asked = re.search(r"^(\w+)\(.*?input (\w+) (must be constant|is constant)", message, re.DOTALL)
    if not asked:
        return False
    names = set()
    for node in model.graph.node:
        if node.op_type == asked[1]:
            schema = onnx.defs.get_schema(node.op_type, model.opset_import[0].version, node.domain)
            places = [index for index, item in enumerate(schema.inputs) if item.name == asked[2]]
            names |= {node.input[place] for place in places if place < len(node.input)}
    inputs = {value.name: value for value in model.graph.input}
    chosen = names & set(inputs) or {name for name in inputs if np.asarray(feeds[name]).dtype.kind in "iub"}
    if not chosen and np.all([np.asarray(feeds[name]).ndim == 0 for name in inputs]):
        chosen = set(inputs)
    for name in chosen:
        model.graph.input.remove(inputs[name])
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(feeds[name]), name))
    return bool(chosen)


def _foreign_types(model: onnx.ModelProto) -> set[str]:
    result = set()
    for value in [*model.graph.input, *model.graph.output]:
        if not value.type.HasField("tensor_type"):
            result.add(str(value.type.WhichOneof("value")).removesuffix("_type"))
            continue
        name = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).name
        if name not in DTYPES - {"uint64"}:
            result.add(name)
    return result


def _array(item: Any) -> Any:
    return numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else item


def report(found: list[Outcome]) -> str:
    """The table as Markdown."""
    total = Counter(item.kind for item in found)
    claimed = [item for item in found if item.kind in {"right", "refused", "wrong", "crashed"}]
    plain = [item for item in claimed if not re.search(r"_expanded", item.case)]
    lines = [
        "# ONNX's own node cases through the importer",
        "",
        made_by("python -m benchmarks.onnx_conformance -o docs/measured/onnx-conformance.md"),
        "",
        f"With onnx {onnx.__version__}, keras {keras.__version__}.",
        "",
        f"{len(found)} cases. Of the {len(claimed)} whose operators and element types the importer claims to know,",
        f"**{total['right']} are right ({total['right'] / max(len(claimed), 1):.1%})**, {total['refused']} refused",
        f"with a reason, {total['wrong']} wrong, {total['crashed']} end in an error that isn't ours. Without the",
        "cases that write an operator out as a function (`_expanded`):",
        f"{sum(item.kind == 'right' for item in plain)} of {len(plain)}.",
        "",
        f"Not claimed: {total['unknown']} with operators that have neither a rule nor a function body,",
        f"{total['type']} refused for element types that Keras doesn't compute in,",
        f"{total['constant']} without any input left, since all must be constant (they are computed by ONNX Runtime",
        "while importing).",
        "",
        *operator_table(found, OUTCOMES),
    ]
    lines += ["", "## Not right", "", "| case | what | why |", "|---|---|---|"]
    for item in claimed:
        if item.kind != "right":
            lines.append(f"| {item.case} | {item.kind} | {_short(item.reason)} |")
    return "\n".join(lines) + "\n"


def _short(reason: str) -> str:
    text = re.sub(r"\s+", " ", reason.replace("|", "/"))
    text = re.sub(r"^\w+\(.*\) of node '.*?' can't be imported: ", "", text)
    return text.removesuffix(" Rewrite that part of the original model, or choose another route (`via`).")[:240]


def main() -> int:
    """Run; exit with 1 when a case is wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", help="only cases with these operators")
    parser.add_argument("-o", "--output", type=Path, help="write the table there")
    options = parser.parse_args()
    found = list(outcomes(set(options.operators)))
    text = report(found)
    if options.output:
        write_text(options.output, text)
    sys.stdout.write(text)
    return int(any(item.kind in {"wrong", "crashed"} for item in found))


if __name__ == "__main__":
    sys.exit(main())
