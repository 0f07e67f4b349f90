"""What workers do for `fuzz`: try networks by a system, and make a finding of a suspicion."""

from __future__ import annotations

import dataclasses
import functools
import importlib.metadata
import io
import json
import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from conrepair.application.report.encode import encode
from conrepair.formats.onnx.load.file import nodes_of
from conrepair.ground.data.tensors import opened_arrays
from conrepair.ground.runtime.files.whole import put_text
from conrepair.ground.runtime.libraries import EXTRAS
from conrepair.ground.runtime.words import shortened
from conrepair_lab.campaigns.generate_jobs import AT, bounded
from conrepair_lab.cases.case import Array, Case, read, written
from conrepair_lab.cases.sizes import SIZES, definite, drawn_sizes, largest, resized
from conrepair_lab.fuzz.fed import drawn_constants, drawn_specials
from conrepair_lab.fuzz.finding import Finding, choices, key_of
from conrepair_lab.fuzz.looking import SUSPECT, UNJUDGED, declared, further, look, looked_at, other_answers
from conrepair_lab.fuzz.reducing import reduced
from conrepair_lab.fuzz.shown import Shown, shown
from conrepair_lab.fuzz.suspicion import ENDS, GRADIENT, REFUSAL, REFUSED, SLOWER, Suspicion
from conrepair_lab.fuzz.trial import tried
from conrepair_lab.generate.generated import INPUTS, MODEL, OUTPUTS
from conrepair_lab.report.fuzz.folder import FINDING, REPRODUCE, read_finding
from conrepair_lab.report.fuzz.reproducer import needed, reproducer
from conrepair_lab.systems.registry import Entry
from conrepair_lab.systems.registry import entry as entry_of
from conrepair_lab.systems.released import Released

TOLD, CASE = "told.jsonl", "case"
"""In a job's folder."""

_FIRST_SECONDS = 120.0
"""More for a worker's first network of a system: libraries are imported."""

_LONGEST = 1000
_IMPORTING = 60.0  # seconds more for a program, which imports its libraries
_AT_BYTES = 80
_ODD = 2  # draws of odd numbers that a build is fed
_THREADED = 10_000  # elements that libraries deal to threads
_tried: set[str] = set()  # systems that this process has run


def case_for(folder: Path, asked: Entry, varied: float, *, odd: int = 0) -> tuple[Case, dict[str, Array] | None]:
    """A network as a system runs it: at times with drawn options, inputs that are weights, other sizes.

    Args:
        folder: Of the network.
        asked: The system.
        varied: Share with options, and share with weights.
        odd: Which draw of odd numbers it's fed; 0 for the usual ones.

    Returns:
        It, and ONNX Runtime's answers where they're there.
    """
    case, right = read_network(folder)
    generator = np.random.default_rng(zlib.crc32(f"{asked.name} {case.key}".encode()))
    if generator.random() < varied and (options := asked.runs.drawn(asked.chosen, generator)):
        case = dataclasses.replace(case, options={asked.system: options})
    if generator.random() < varied:
        case = drawn_constants(case, generator)
    case = _of_sizes(case, asked, generator)
    return (_odd(case, odd), None) if odd else (case, right)


def _odd(case: Case, draw: int) -> Case:
    return drawn_specials(case, np.random.default_rng(zlib.crc32(f"odd {draw} {case.key}".encode())))


def _of_sizes(case: Case, asked: Entry, generator: np.random.Generator) -> Case:
    """A case that leaves sizes open with further ones, or for a system that builds for definite ones without."""
    dims = [size for item in case.model.graph.input for size in item.type.tensor_type.shape.dim]
    opened = [size for size in dims if not size.HasField("dim_value")]
    if not opened:
        return case
    if asked.runs.symbolic(asked.chosen) is None or not all(size.dim_param for size in opened):
        return definite(case)
    drawn = drawn_sizes(case, generator)
    further = resized(drawn)
    return case if further is None or other_answers(further) is None else drawn


def threaded(case: Case, asked: Entry, varied: float) -> bool:
    """Whether a case is tried with another number of threads, too: where it's large, and sometimes.

    Args:
        case: As of `case_for`.
        asked: The system.
        varied: Share of those that are small.
    """
    drawn = np.random.default_rng(zlib.crc32(f"threads {asked.name} {case.key}".encode())).random()
    return asked.runs.threads(asked.chosen) and (bool(drawn < varied) or largest(case) >= _THREADED)


def read_network(folder: Path) -> tuple[Case, dict[str, Array] | None]:
    """A network of a campaign, and ONNX Runtime's answers where they're there.

    Args:
        folder: Of a generated network, or one of the same form.
    """
    network = (folder / MODEL).read_bytes()
    graph = onnx.load_from_string(network).graph
    inputs = _typed(opened_arrays(folder / INPUTS), graph.input) if graph.input else {}
    right = _typed(opened_arrays(folder / OUTPUTS), graph.output) if (folder / OUTPUTS).is_file() else None
    return Case(network, inputs), right


def _typed(arrays: Mapping[str, Array], values: Iterable[onnx.ValueInfoProto]) -> dict[str, Array]:
    """Arrays in a network's own types, of which NumPy's files don't have all."""
    types = {item.name: item.type.tensor_type.elem_type for item in values}
    return {
        name: array.astype(onnx.helper.tensor_dtype_to_np_dtype(types[name]), copy=False)
        if types.get(name)
        else array
        for name, array in arrays.items()
    }


def fuzz_try(
    folder: Path,
    entry: str,
    networks: tuple[Path, ...],
    seconds: float,
    varied: float,
    *,
    special: bool = False,
    slower: bool = False,
) -> None:
    """Try networks by a system, one after the other.

    Args:
        folder: Receives `TOLD`, a line for each network that was tried, and `AT`, which one is being tried or judged.
        entry: The system and its setting.
        networks: Folders.
        seconds: For each.
        varied: Share of them that get drawn options.
        special: Whether all are fed odd numbers, too.
        slower: Whether they're timed, too.
    """
    asked = entry_of(entry)
    with (folder / AT).open("wb", buffering=0) as said:
        for place, where in enumerate(networks):
            at = functools.partial(_say, said, place)
            at()
            more = 0.0 if asked.name in _tried else _FIRST_SECONDS
            with bounded(seconds + more):
                case, right = case_for(where, asked, varied)
                threads = threaded(case, asked, varied)
                others = _others(case, at) if special else ()
                trial = tried(case, asked.runs, asked.chosen, folder, threads=threads, others=others)
                at(judging=True)
                found = looked_at(case, trial, right or other_answers(case), asked.chosen)
                stages = {REFUSAL, GRADIENT} | ({SLOWER} if slower else set())
                found = further(found, case, trial, asked.runs, asked.chosen, folder, stages)
                for draw, (other, seen) in enumerate(trial.others if found.suspicion is None else (), 1):
                    odd = looked_at(other, seen, other_answers(other), asked.chosen)
                    if odd.suspicion is not None:
                        found, case = dataclasses.replace(odd, seconds=found.seconds, odd=draw), other
                        break
                if found.suspicion is not None and found.plainly is None:
                    plainly = _plainly(case, found.suspicion, asked, folder)
                    found = dataclasses.replace(found, plainly=plainly)
            _tried.add(asked.name)
            told = encode(found) | {"message": shortened(found.message, _LONGEST)}
            with (folder / TOLD).open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(told) + "\n")


def _say(file: io.FileIO, place: int, *, judging: bool = False, odd: int = 0) -> None:
    """Keep what is being tried, for whoever finds the process ended: in one write, several times a network."""
    os.pwrite(
        file.fileno(), json.dumps({"place": place, "judging": judging, "odd": odd}).ljust(_AT_BYTES).encode(), 0
    )


def _others(case: Case, at: Callable[..., None]) -> Iterator[Case]:
    """The same case with odd numbers, where it can have such: said before it's run, for it may end the process."""
    for draw in range(1, 1 + _ODD):
        other = _odd(case, draw)
        if other is not case:
            at(odd=draw)
            yield other


def _plainly(case: Case, suspicion: Suspicion, asked: Entry, folder: Path) -> bool | None:
    """Whether a system's plain setting shows the same; None where it doesn't run in this process."""
    if asked.plain == asked:
        return True
    if asked.runs.plain_beside(asked.chosen) is None:
        return None
    return _shown(case, suspicion, asked.plain.name, folder)


@dataclass(frozen=True)
class Made:
    """What was made of a suspicion.

    Attributes:
        verdict: As of `conrepair_lab.fuzz.reducing.Reduction`.
        words: Who says so, or why it's nothing.
        finding: It, without a source, where it's one.
    """

    verdict: str
    words: str
    finding: Finding | None = None


def fuzz_reduce(
    folder: Path,
    *,
    entry: str,
    network: Path,
    suspicion: Suspicion,
    seconds: float,
    longest: float,
    others: tuple[str, ...] = (),
    apart: bool = False,
    varied: float = 0.0,
    odd: int = 0,
) -> Made:
    """Make a finding of a suspicion.

    Args:
        folder: Receives `CASE` and the program.
        entry: The system and its setting.
        network: Folder.
        suspicion: What was seen.
        seconds: For the reduction.
        longest: Seconds for a try of what may hang.
        others: Entries that are asked whether they show it, too.
        apart: Whether each case is looked at in a process of its own.
        varied: As of `fuzz_try`.
        odd: Which draw of odd numbers showed it; 0 for the usual ones.
    """
    asked = entry_of(entry)
    case, _ = case_for(network, asked, varied, odd=odd)
    found = reduced(case, suspicion, asked, folder, seconds=seconds, longest=longest, apart=apart)
    if found.verdict != SUSPECT:
        return Made(found.verdict, found.words)
    written(found.case, folder / CASE)
    seen = found.suspicion
    ends = seen.kind in ENDS  # who shows that, too, isn't asked: it would end this process
    operators = tuple(node.op_type for node in nodes_of(found.case.model.graph))
    versions = _versions(asked.runs.packages)
    finding = Finding(
        key=key_of(asked.system, seen, operators, found.cause, choices(found.case.model)),
        system=asked.system,
        setting=asked.setting,
        suspicion=seen,
        operators=operators,
        cause=found.cause,
        judges=found.words,
        blamed=asked.runs.blamed(asked.chosen, versions),
        versions=versions,
        case=found.case.key,
        source="",
        tries=found.tries,
        smallest=found.smallest,
        also=() if ends else tuple(name for name in others if _shown(found.case, seen, name, folder)),
        release=asked.release,
    )
    ran = _ran(finding, found.case, asked, folder, longest)
    return Made(found.verdict, found.words, dataclasses.replace(finding, shown=() if ran is None else (ran,)))


def _ran(finding: Finding, case: Case, asked: Entry, folder: Path, longest: float) -> Shown | None:
    """Write a finding's program into a folder, and run it: by the release that's asked, in its environment."""
    seen = finding.suspicion
    of = case if seen.stage != SIZES else resized(case) or case
    right = {} if seen.kind in ENDS else {**(other_answers(of) or {}), **declared(of.model)}
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        model = case.file(Path(scratch))
        try:
            programmed = asked.runs.programmed(model, asked.chosen, Path(scratch))
        except Exception:  # noqa: BLE001 (where converting is what fails, programs begin with the ONNX file)
            programmed = model
        text = reproducer(finding, case, Path(programmed.path), right.get(seen.output))
    program = folder / REPRODUCE
    put_text(program, text)
    within = asked.runs.within(asked.chosen) if isinstance(asked.runs, Released) else None
    needs = needed(finding, text)
    return shown(program, seen, needs, seconds=longest + _IMPORTING, within=within, release=asked.release)


def fuzz_recheck(
    folder: Path, entry: str, case: Path, key: str, suspicion: Suspicion
) -> tuple[str, str, Shown | None]:
    """Try a finding's case again, and by another release its program, too: written anew, as it may be anybody's.

    Args:
        folder: For files.
        entry: The system and its setting.
        case: Folder.
        key: Of that case.
        suspicion: What was seen.

    Returns:
        "there", "gone" or "unknown", words, and what the program did in another release.
    """
    asked, tried_again = entry_of(entry), read(case)
    if tried_again.key != key:
        return "unknown", "the folder holds another case than its finding. Copy the whole folder again.", None
    found = look(tried_again, asked.runs, asked.chosen, folder, stage=suspicion.stage)
    words = found.message if found.suspicion is None else f"{found.suspicion.kind}: {found.suspicion.message}"
    ran = None
    if asked.release and (case / FINDING).is_file():
        finding = dataclasses.replace(read_finding(case), release=asked.release)
        ran = _ran(finding, tried_again, asked, folder, _IMPORTING)
    if suspicion.same(found.suspicion):
        return "there", words, ran
    if found.verdict in {REFUSED, UNJUDGED, SUSPECT}:
        return "unknown", f"{found.verdict}: {words}", ran
    return "gone", found.verdict, ran


def _shown(case: Case, suspicion: Suspicion, name: str, folder: Path) -> bool:
    other = entry_of(name)
    found = look(case, other.runs, other.chosen, folder, strict=True, stage=suspicion.stage)
    return suspicion.same(found.suspicion)


@functools.cache
def _versions(packages: tuple[str, ...]) -> Mapping[str, str]:
    """Of what takes part in campaigns, and of what else a system has, as far as it's here."""
    found, extras = {}, (name for extra in EXTRAS for name in extra.libraries.values())
    for name in ("conrepair", "numpy", "onnx", "onnxruntime", *extras, *packages):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
