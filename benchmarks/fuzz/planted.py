"""Faults that are planted in generated networks and made smaller: how many are told from rounding?

    python -m benchmarks.fuzz.planted [--faults N] [--networks N] [--nodes N] [--seed N] [--tvm N] [-o PAGE]

Each network gets one fault of `benchmarks.faults`, of those that fit the one that was planted least so far. Its
effect is scaled down: by shares of itself (in the network where it's in real weights or attributes, else in the
answers), to multiples of the largest error of right answers (ONNX Runtime's with and without optimizations, and those
of ONNX's reference in the network's own types), and to multiples of the bound that the judge goes by. Told is
what's suspect; answers that rounding makes the right ones again don't count. Beside it the right networks are judged
as ONNX Runtime runs them with and without optimizations, and some by TVM: suspects there are false alarms, or what
these do wrong.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import shlex
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

import conrepair
from benchmarks.common.measured import made_by
from benchmarks.faults.catalogue import faults
from benchmarks.faults.inject_file import inject_file
from benchmarks.fuzz.planted_page import BOUND, BOUNDS, ROUNDING, ROUNDINGS, SHARE, SHARES, Compared, Row, page
from benchmarks.fuzz.scaled import Scale, blended, in_own_types, scale_of, scaled
from benchmarks.generate.elsewhere import Elsewhere, EndedError
from conrepair.formats.editing.editor import NotEditableError
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.ground.runtime.errors import ConrepairError
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.fuzz.looking import SUSPECT, UNJUDGED, Looked, look, looked_at
from conrepair_lab.fuzz.suspicion import REFUSED
from conrepair_lab.fuzz.trial import Trial
from conrepair_lab.generate.onnx_form import RefusedError, run
from conrepair_lab.systems.registry import entry

_PLAIN, _ALL, _TVM = entry("ort-none"), entry("ort-all"), entry("tvm-O3")
_TRIES = 8  # faults of a network
_SECONDS = 120.0
_SLOW = 2.0  # seconds for a verdict: exact values take as long at every size
_COMMAND = "python -m benchmarks.fuzz.planted"


def compared(case: Case, index: int, systems: Sequence[str]) -> list[Compared]:
    """Judge a right network as systems run it, what equals ONNX Runtime's answers, too.

    Args:
        case: The network.
        index: Of it.
        systems: Names.
    """
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for asked in map(entry, systems):
            looked = look(case, asked.runs, asked.chosen, Path(folder), strict=True)
            found.append(Compared(index, asked.name, looked.verdict, _words(looked)))
    return found


def _words(looked: Looked) -> str:
    if looked.suspicion is None:
        return ""
    return f"{looked.suspicion.kind}: {looked.suspicion.message}"


def fitting(case: Case) -> list[str]:
    """Names of the faults that have a place in a network.

    Args:
        case: The network.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            graph = open_editor(_file(case, Path(folder))).graph
        except ConrepairError:
            return []
        return [fault.name for fault in faults() if fault.native.places(graph)]


def planted(case: Case, index: int, fault: str) -> list[Row]:
    """Plant a fault in a network, and judge it at all sizes.

    Args:
        case: The network.
        index: Of it.
        fault: Which fits.

    Returns:
        Nothing where it has no effect on real numbers that's larger than the smallest of the sizes.
    """
    model = case.model
    names = [item.name for item in model.graph.output]
    kind = next(item for item in faults() if item.name == fault)
    with tempfile.TemporaryDirectory() as folder:
        try:
            right: tuple[Mapping[str, Array], ...]
            right = run(model, case.inputs, names), run(model, case.inputs, names, optimized=True)
            right += tuple(in_own_types(model, case.inputs, right[0]))
            file = _file(case, Path(folder))
            injected = inject_file(file, kind, case.inputs, np.random.default_rng(index), Path(folder) / "faulty")
            if injected is None:
                return []
            wrong_model = onnx.load(injected.path)
            wrong = _answers(wrong_model, case, names)
        except (RefusedError, ConrepairError, NotEditableError):
            return []
    scale = scale_of(case, right)
    effect = scale.errors(scaled(right[0], wrong, 1.0))
    if scale.in_roundings(effect) < ROUNDINGS[0]:
        return []
    return list(_rows(case, index, fault, right[0], wrong, wrong_model, scale))


def _answers(model: onnx.ModelProto, case: Case, names: Sequence[str]) -> dict[str, Array]:
    """Of a faulty network, whose inputs and outputs may be called otherwise, by the right one's names.

    Raises:
        RefusedError: if ONNX Runtime doesn't take it.
    """
    stored = {item.name for item in model.graph.initializer}
    inputs = [item.name for item in model.graph.input if item.name not in stored]
    fed = dict(zip(inputs, case.inputs.values(), strict=True))
    found = run(model, fed, [item.name for item in model.graph.output])
    return dict(zip(names, found.values(), strict=True))


def _rows(
    case: Case,
    index: int,
    fault: str,
    right: Mapping[str, Array],
    wrong: Mapping[str, Array],
    wrong_model: onnx.ModelProto,
    scale: Scale,
) -> Iterator[Row]:
    """One for each size that isn't larger than the fault."""
    slow = False

    def row(by: str, size: float, given: Mapping[str, Array], *, inside: bool = False) -> Row:
        nonlocal slow
        verdict = UNJUDGED if slow else ""
        if not slow and any(given[name].tobytes() != array.tobytes() for name, array in right.items()):
            begun = time.monotonic()
            verdict = looked_at(case, Trial((given,)), right, _ALL.chosen).verdict
            slow = verdict == UNJUDGED and time.monotonic() - begun > _SLOW
        return Row(
            index,
            fault,
            by,
            size,
            inside,
            scale.known,
            verdict,
            scale.in_roundings(scale.errors(given)),
            scale.loose(given),
        )

    effect = {
        name: np.abs(array.astype(np.float64) - right[name])
        for name, array in scaled(right, wrong, 1.0).items()
        if name in scale.rounding
    }
    effect = {name: np.nan_to_num(array, nan=0.0, posinf=0.0) for name, array in effect.items()}
    names = list(right)
    for share in SHARES:
        between = blended(case.model, wrong_model, share)
        if between is not None:
            yield row(SHARE, share, run(between, case.inputs, names), inside=True)
        else:
            yield row(SHARE, share, wrong if share == 1 else scaled(right, wrong, share))
    for by, sizes, whole in (
        (ROUNDING, ROUNDINGS, scale.in_roundings(effect)),
        (BOUND, BOUNDS, scale.in_bounds(effect)),
    ):
        for size in sizes:
            if np.isfinite(whole) and size <= whole:
                yield row(by, size, scaled(right, wrong, size / whole))


def _file(case: Case, folder: Path) -> Model:
    path = folder / "network.onnx"
    path.write_bytes(case.network)
    return Model("onnx", str(path), model_sha256(path))


def measured(
    cases: Iterable[Case], wanted: int, tvm: int, seconds: float = _SECONDS
) -> tuple[list[Row], list[Compared], int]:
    """Judge right networks, and plant faults until there are enough.

    Args:
        cases: The networks.
        wanted: Faults.
        tvm: Every so many networks is run by TVM, too; 0 for none.
        seconds: That a step may take.

    Returns:
        What came of faults, and of right networks; and how many networks ended the process that looked at them.
    """
    process, apart = Elsewhere(), Elsewhere()
    rows: list[Row] = []
    beside: list[Compared] = []
    used: collections.Counter[str] = collections.Counter()
    ended = 0
    for index, case in enumerate(cases):
        try:
            found = process.call(seconds, compared, case, index, [_PLAIN.name, _ALL.name])
            if tvm and index % tvm == 0:  # its handlers of signals are for all of a process
                beside += apart.call(seconds, compared, case, index, [_TVM.name])
        except EndedError:
            ended += 1
            continue
        beside += found
        if used.total() == wanted or any(item.verdict in {SUSPECT, REFUSED} for item in found[:2]):
            continue  # what isn't right to begin with shows nothing of a fault
        try:
            fit = process.call(seconds, fitting, case)
        except Exception as error:  # noqa: BLE001 (as below)
            print(f"network {index}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            continue
        for name in sorted(fit, key=used.__getitem__)[:_TRIES]:
            try:
                more = process.call(seconds, planted, case, index, name)
            except EndedError:  # ONNX Runtime may end in what was made invalid
                continue
            except Exception as error:  # noqa: BLE001 (a network that this can't take must not end all of it)
                print(f"network {index}, {name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                continue
            if more:
                used[name] += 1
                rows += more
                break
        if index % 25 == 0:
            print(f"{index + 1} networks, {used.total()} faults", file=sys.stderr, flush=True)
    return rows, beside, ended


def _words_of(options: argparse.Namespace) -> list[str]:
    """The command, without the files that it writes."""
    asked = {name: value for name, value in vars(options).items() if name not in {"output", "rows"}}
    return [*_COMMAND.split(), *(word for name, value in asked.items() for word in (f"--{name}", str(value)))]


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--networks", type=int, default=1000, help="Right ones; faults are planted in the first.")
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--tvm", type=int, default=25, help="Every so many networks is run by TVM, too; 0 for none.")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--rows", type=Path, help="Write what came of each size of each fault, as CSV.")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="No network is begun after so long.")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    drawn = conrepair.generated(count=options.networks, nodes=options.nodes, seed=options.seed)
    cases: Iterable[Case] = (Case.of(network.model, network.inputs) for network in drawn)
    cases = itertools.takewhile(lambda _: time.monotonic() < end, cases)
    rows, beside, ended = measured(cases, options.faults, options.tvm)
    if options.rows:
        text = "".join(f"{','.join(map(str, vars(row).values()))}\n" for row in rows)
        options.rows.write_text(f"{','.join(Row.__dataclass_fields__)}\n{text}", encoding="utf-8")
    text = page(rows, beside, ended, made_by(shlex.join(_words_of(options))))
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
