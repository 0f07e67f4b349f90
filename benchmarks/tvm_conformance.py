"""ONNX's own single-operator cases through TVM's importer, setting O2 and LLVM.

    python -m benchmarks.tvm_conformance [-o docs/measured/tvm-conformance.md] [--expanded] [OPERATOR ...]

The cases are those of `onnx.backend.test` (kind "node") with their expected outputs and tolerances. All inputs stay
inputs; where the importer refuses that, inputs of whole numbers (shapes, axes, indices) become initializers, then all
but the first, and the case counts as `constant` if it's right then. A wrong case says what two other implementations
answer: it's TVM's fault where ONNX Runtime agrees with the expected output, and nobody's where that differs, too; the
reference, which comes with the cases, is no second opinion but where ONNX Runtime can't. Cases run
in a worker process, several at a time; if it dies, they are run again one by one. `--expanded` takes those too that
write an operator out as a function.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from benchmarks.common.jobs import JOBS
from benchmarks.common.measured import made_by
from benchmarks.common.node_cases import HALF_ULPS, node_cases, operator_of, operator_table
from conrepair.formats.tvm.import_onnx import definite_onnx, relax_of_onnx
from conrepair.formats.tvm.runnable import arrays_of
from conrepair.formats.tvm.settings import BuildContext, steps_of
from conrepair.formats.tvm.target import parse_target
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.files.whole import write_text
from conrepair.ground.runtime.processes.workers import Failure, Job, Workers

OUTCOMES = ("passed", "constant", "wrong", "unsupported", "crashed")
_AT_ONCE = 20
_SECONDS = 60.0
_WORDS = 200
_RUNTIME, _REFERENCE, _AGREES, _DIFFERS = "ONNX Runtime", "onnx.reference", "agrees with ONNX", "differs, too"
_VERDICTS = {
    f"{_RUNTIME} {_AGREES}": "yes",
    f"{_RUNTIME} {_DIFFERS}": "no",
    f"{_REFERENCE} {_AGREES}": "yes, by the reference alone",
}
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `kind` is one of OUTCOMES."""

    case: str
    operator: str
    kind: str
    reason: str = ""
    others: str = ""

    @property
    def fault(self) -> str:
        """Whether it's TVM's fault that a case is wrong."""
        return next((verdict for words, verdict in _VERDICTS.items() if words in self.others), "not known")


def judge(folder: Path, **payload: Any) -> dict[str, Any]:
    """Run cases; a job of a worker.

    Args:
        payload: "cases": their names; "expanded".
        folder: Not used.

    Returns:
        By name: kind, reason, and what others answer.
    """
    cases = _known_cases(expanded=payload["expanded"])
    return {name: _judge(cases[name]) for name in payload["cases"]}


_CASES: dict[bool, dict[str, Any]] = {}


def _known_cases(*, expanded: bool) -> dict[str, Any]:
    """The cases, made once in a worker."""
    if expanded not in _CASES:
        _CASES[expanded] = node_cases(expanded=expanded)
    return _CASES[expanded]


def _judge(case: Any) -> tuple[str, str, str]:
    kinds = [_attempt(case, inputs, expected) for inputs, expected in case.data_sets]
    return max(kinds, key=lambda item: OUTCOMES.index(item[0]))


def _attempt(case: Any, inputs: Sequence[Any], expected: Sequence[Any]) -> tuple[str, str, str]:
    graph = case.model.graph
    if any(not value.type.HasField("tensor_type") for value in [*graph.input, *graph.output]):
        return "unsupported", "sequences and optional values", ""
    feeds = dict(zip([value.name for value in graph.input], map(_array, inputs), strict=True))
    wanted = [_array(item) for item in expected]
    whole = [name for name, array in feeds.items() if array.dtype.kind in "iub"]
    reasons = []
    for kind, frozen in (("passed", []), ("constant", whole), ("constant", list(feeds)[1:])):
        if kind == "constant" and not (frozen and len(frozen) < len(feeds)):
            continue
        try:
            found = _through_tvm(case.model, feeds, frozen)
        # Whatever TVM raises, it didn't take the case; a crash ends this process and is counted there.
        except Exception as error:  # noqa: BLE001
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            reasons.append(f"{type(error).__name__}: {' '.join(lines)[:_WORDS]}")
            continue
        difference = _difference(case, found, wanted)
        if difference is None:
            return kind, "", ""
        return "wrong", difference, _others(case, feeds, wanted)
    return "unsupported", reasons[0], ""


def _through_tvm(model: onnx.ModelProto, feeds: dict[str, Array], frozen: Sequence[str]) -> list[Array]:
    import tvm
    from tvm import relax

    proto = onnx.ModelProto()
    proto.CopyFrom(model)
    for value in [value for value in proto.graph.input if value.name in frozen]:
        proto.graph.input.remove(value)
        proto.graph.initializer.append(numpy_helper.from_array(feeds[value.name], value.name))
    left = {value.name: feeds[value.name] for value in proto.graph.input}
    specs = [TensorSpec(name, array.shape, array.dtype.name) for name, array in left.items()]
    text = parse_target("llvm")
    target = text.resolve()
    with tempfile.TemporaryDirectory() as folder, target, tvm.transform.PassContext(opt_level=3):
        module, _ = relax_of_onnx(definite_onnx(proto, specs), specs, "the case")
        for step in steps_of(text, "O2"):
            module = step.build(BuildContext(target, Path(folder), 0, None))(module)
        machine = relax.VirtualMachine(relax.build(module, target, relax_pipeline=None), tvm.cpu())
        result = machine["main"](*[tvm.runtime.tensor(np.asarray(array, order="C")) for array in left.values()])
    return arrays_of(result)


def _difference(case: Any, found: Sequence[Array], wanted: Sequence[Array]) -> str | None:
    if len(found) != len(wanted):
        return f"{len(found)} outputs instead of {len(wanted)}"
    for one, two in zip(found, wanted, strict=True):
        if (one.shape, one.dtype) != (two.shape, two.dtype):
            return f"{one.dtype}{list(one.shape)} instead of {two.dtype}{list(two.shape)}"
        if one.dtype.kind not in "fV":
            if not np.array_equal(one, two):
                return f"{np.mean(one != two):.0%} of the elements differ"
            continue
        rtol = max(case.rtol, HALF_ULPS.get(one.dtype.name, 0.0))
        if not np.allclose(one.astype(float), two.astype(float), rtol=rtol, atol=case.atol, equal_nan=True):
            if not np.array_equal(np.isfinite(one.astype(float)), np.isfinite(two.astype(float))):
                return "infinite or not a number elsewhere"
            with np.errstate(invalid="ignore"):
                return f"differs by up to {np.nanmax(np.abs(one.astype(float) - two.astype(float))):.2g}"
    return None


def _others(case: Any, feeds: dict[str, Array], wanted: Sequence[Array]) -> str:
    """Which other implementations agree with the expected output."""
    import onnxruntime
    from onnx.reference import ReferenceEvaluator

    def through_runtime() -> Any:
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        return onnxruntime.InferenceSession(case.model.SerializeToString(), options).run(None, feeds)

    said = []
    ways = {
        _RUNTIME: through_runtime,
        _REFERENCE: lambda: ReferenceEvaluator(case.model).run(None, feeds),
    }
    for name, way in ways.items():
        try:
            difference = _difference(case, [np.asarray(item) for item in way()], wanted)
        # Either may lack the operator; that is the answer then.
        except Exception as error:  # noqa: BLE001
            said.append(f"{name} can't ({type(error).__name__})")
        else:
            said.append(f"{name} {_AGREES if difference is None else _DIFFERS}")
    return ", ".join(said)


def outcomes(names: Sequence[str], *, expanded: bool) -> Iterator[dict[str, tuple[str, str, str]]]:
    """Judge cases in a worker, whose crashes are results."""
    root = str(Path(__file__).parents[1])
    waiting = [list(names[start : start + _AT_ONCE]) for start in range(0, len(names), _AT_ONCE)]
    with tempfile.TemporaryDirectory() as scratch, Workers(1, (root,), jobs=JOBS) as workers:
        for number, group in enumerate(waiting):
            whole = _call(workers, Path(scratch), f"{number}", group, expanded=expanded)
            if not isinstance(whole, Failure):
                yield whole
                continue
            for place, name in enumerate(group):
                alone = _call(workers, Path(scratch), f"{number}-{place}", [name], expanded=expanded)
                yield {name: ("crashed", alone.error_type, "")} if isinstance(alone, Failure) else alone


def _call(
    workers: Workers, scratch: Path, name: str, cases: Sequence[str], *, expanded: bool
) -> dict[str, tuple[str, str, str]] | Failure:
    folder = scratch / name
    folder.mkdir()
    payload = {"cases": list(cases), "expanded": expanded}
    done = workers.call(
        Job("benchmarks.tvm_conformance:judge", payload, folder, frozenset({"tvm"}), _SECONDS * len(cases))
    )
    if isinstance(done, Failure) and done.kind == "exception":  # ours: what TVM raises is caught in the worker
        raise RuntimeError(done.traceback)
    return done if isinstance(done, Failure) else done.value


def report(found: Sequence[Outcome]) -> str:
    """The table as Markdown."""
    import importlib.metadata

    total = Counter(item.kind for item in found)
    version = importlib.metadata.version("apache-tvm")
    right = total["passed"] + total["constant"]
    lines = [
        "# ONNX's own node cases through TVM",
        "",
        made_by("python -m benchmarks.tvm_conformance -o docs/measured/tvm-conformance.md"),
        "",
        f"TVM's ONNX importer, setting O2, target llvm, with apache-tvm {version}, onnx {onnx.__version__}.",
        "",
        f"{len(found)} cases: **{right} right** ({total['constant']} of them with inputs, shapes for instance,",
        "as constants),",
        f"{total['wrong']} wrong, {total['unsupported']} unsupported, {total['crashed']} crashed or took longer than",
        f"{_SECONDS:.0f} s. Cases that write an operator out as a function (`_expanded`) are left out.",
        "",
        *operator_table(found, OUTCOMES),
    ]
    faults = Counter(item.fault for item in found if item.kind == "wrong")
    told = "; ".join(f"{verdict}: {count}" for verdict, count in faults.most_common())
    lines += ["", "## Wrong or crashed", "", *([f"TVM's fault? {told}.", ""] if told else [])]
    lines += ["| case | what | how | other implementations | TVM's fault |", "|---|---|---|---|---|"]
    lines += [
        f"| {item.case} | {item.kind} | {_cell(item.reason)} | {_cell(item.others)} | {item.fault} |"
        for item in found
        if item.kind in {"wrong", "crashed"}
    ]
    lines += ["", "## Unsupported", "", "| operator | cases | the first one's reason |", "|---|---:|---|"]
    refused: dict[str, list[Outcome]] = defaultdict(list)
    for item in found:
        if item.kind == "unsupported":
            refused[item.operator].append(item)
    lines += [f"| {name} | {len(items)} | {_cell(items[0].reason)} |" for name, items in sorted(refused.items())]
    return "\n".join(lines) + "\n"


def _array(item: Any) -> Array:
    return numpy_helper.to_array(item) if isinstance(item, onnx.TensorProto) else np.asarray(item)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:_WORDS]


def main() -> int:
    """Run; exit with 1 when a case is wrong or crashed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*", help="only cases with these operators")
    parser.add_argument("--expanded", action="store_true", help="those that write an operator out, too")
    parser.add_argument("-o", "--output", type=Path, help="write the table there")
    options = parser.parse_args()
    cases = node_cases(expanded=options.expanded)
    names = [
        name
        for name, case in cases.items()
        if not options.operators or {node.op_type for node in case.model.graph.node} & set(options.operators)
    ]
    found = []
    for results in outcomes(names, expanded=options.expanded):
        found += [Outcome(name, operator_of(cases[name]), *result) for name, result in results.items()]
        sys.stderr.write(f"{len(found)} of {len(names)}\n")
    text = report(found)
    if options.output:
        write_text(options.output, text)
    sys.stdout.write(text)
    return int(any(item.kind in {"wrong", "crashed"} for item in found))


if __name__ == "__main__":
    sys.exit(main())
