"""Run a case in a system several times, and keep the outputs or the way it ended."""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from conrepair.formats.models.runnable import Runnable
from conrepair.formats.onnx.load.file import nodes_of
from conrepair.ground.data.stored_values import ONLY_ELSEWHERE, to_stored
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConrepairError, DataError, ToolCrashError, ToolError
from conrepair.ground.runtime.words import shortened
from conrepair_lab.cases.case import Array, Case
from conrepair_lab.cases.sizes import SIZES, open_sizes, resized
from conrepair_lab.fuzz.suspicion import REFUSED, SLOWER, THREADS, Suspicion
from conrepair_lab.systems.system import Setting, System

CONVERT, LOAD, RUN = "convert", "load", "run"
"""Stages of a trial, with `THREADS`, and `SIZES` for further ones."""

OTHER_THREADS = 1 if (os.cpu_count() or 1) > 1 else 2
"""Libraries take one for each core."""

_LONGEST = 2000
_FOLDERS = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+")  # of a machine, and of a run
_STACK = re.compile(r"\s*Stack backtrace:.*", re.DOTALL)  # of libraries in Rust
_GAP = re.compile(
    r"not (?:yet |currently )?(?:been )?(?:supported|implemented)|unsupported|notimplemented"
    r"|can ?not be (?:imported|typed)|no (?:implementation|conversion|kernel|converter|op(?:erator)? )"
    r"|could not find an implementation"
    r"|(?:does|do|is|are|has|have)(?:n't| not) (?:support|implement|handle|take|know|allow)"
    r"|only (?:support|works|takes)|only [\w/ ]{1,60} (?:are |is )?(?:currently )?supported|no onnx function found"
    r"|needs? to be (?:a )?(?:constant|static)|must be (?:a )?(?:constant|static|known)"
    r"|unimplemented|expects? an? (?:constant|static)|didn't find op for|couldn't load custom c\+\+ ops"
    r"|scalartype \w+ is an unexpected|assigned to the default cpu ep"  # of ONNX Runtime's other providers
    r"|no corresponding numpy type|no schema registered|no previous version|unknown (?:\w+ (?:or \w+ )?)?\w*type"
    r"|neither a custom op nor a flex op|could not translate mlir to flatbuffer"  # of TFLite
    r"|requires a fixed tensor list size"  # of XLA, which differentiates no loop without a largest number of rounds
    r"|guard failed"  # of PyTorch, which narrows open sizes, and says to which
    r"|unknown op|unrecognized|not registered|isn't known|can't (?:be )?(?:say|said|take|import|express)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Trial:
    """The outputs of a case in a system, or the way it ended.

    Attributes:
        answers: Of each run on the same inputs, by output; empty where it ended otherwise.
        ended: How; of the kind "refused" where it's said that something isn't taken.
        otherwise: Answers with `OTHER_THREADS`, where they were asked for.
        further: Answers of the same build with the case's further sizes, where it has any.
        others: Further cases of the same network that the same build ran, once each, and what came of them.
        seconds: That it took.
    """

    answers: tuple[Mapping[str, Array], ...] = ()
    ended: Suspicion | None = None
    otherwise: Mapping[str, Array] = field(default_factory=dict)
    further: Mapping[str, Array] = field(default_factory=dict)
    others: tuple[tuple[Case, Trial], ...] = ()
    seconds: float = field(default=0.0, compare=False)


def tried(
    case: Case,
    system: System,
    setting: Setting,
    folder: Path,
    *,
    runs: int = 3,
    threads: bool = False,
    others: Iterable[Case] = (),
) -> Trial:
    """Convert, load and run a case.

    The second run is fed arrays that lie otherwise in memory (with gaps, read-only), behind one on other numbers that
    a third one follows: all must answer alike.

    Args:
        case: Any.
        system: Which.
        setting: How it's run; the case's options of the system's backend are added.
        folder: For files.
        runs: How many; 1 for answers alone.
        threads: Whether another one has another number of threads, where the system can.
        others: Further cases of the same network, each taken when it's to be run, behind all else.
    """
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(dir=folder) as made:
        stage, answers = CONVERT, list[Mapping[str, Array]]()
        otherwise, further = dict[str, Array](), dict[str, Array]()
        try:
            model = case.file(Path(made))
            chosen = with_options(system, setting, case)
            system.converted(model, chosen, Path(made))
            stage = LOAD
            runnable = system.open(model, chosen, Path(made))
            stage = RUN
            answers.append(_run(runnable, _copies(case.inputs)))
            if runs > 1:
                answers.append(_run(runnable, {name: _laid_otherwise(array) for name, array in case.inputs.items()}))
            if runs > 2:
                _disturb(runnable, case.inputs)
                answers.append(_run(runnable, _copies(case.inputs)))
            larger = resized(case) if system.symbolic(chosen) is not None else None
            if larger is not None and _takes(runnable, larger.inputs):
                stage = SIZES
                further = _run(runnable, larger.inputs)
            if threads and system.threads(chosen):
                stage = THREADS
                other = system.with_threads(runnable, model, chosen, Path(made), OTHER_THREADS)
                otherwise = _run(other, _copies(case.inputs))
            seen = tuple((one, _once(runnable, one)) for one in others)
        # Libraries raise whatever their assumptions break into: that is what's looked for.
        except Exception as error:  # noqa: BLE001
            return Trial((), how_ended(stage, error, case), seconds=time.perf_counter() - begun)
    return Trial(tuple(answers), None, otherwise, further, seen, time.perf_counter() - begun)


def _once(runnable: Runnable, case: Case) -> Trial:
    try:
        return Trial((_run(runnable, _copies(case.inputs)),))
    except Exception as error:  # noqa: BLE001 (as above)
        return Trial((), how_ended(RUN, error, case))


def _takes(runnable: Runnable, inputs: Mapping[str, Array]) -> bool:
    """Whether inputs are of sizes that a build declares: libraries may narrow what the network leaves open."""
    limits = {limit.symbol: limit for spec in runnable.inputs for limit in spec.ranges}
    for spec in runnable.inputs:
        for size, there in zip(spec.shape, inputs[spec.name].shape, strict=False):
            limit = limits.get(str(size))
            if isinstance(size, int) and size != there:
                return False
            if limit is not None and not limit.low <= there <= (there if limit.high is None else limit.high):
                return False
    return True


def with_options(system: System, setting: Setting, case: Case) -> Setting:
    """A setting with a case's own options besides, built for all sizes that the case leaves open, where it can be.

    Args:
        system: Whose they are.
        setting: Of it.
        case: Any.
    """
    chosen = system.with_drawn(setting, case.options.get(system.name, {}))
    return (system.symbolic(chosen) or chosen) if open_sizes(case) else chosen


def _run(runnable: Runnable, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Answers as they're stored, that stay as they are, whatever the runtime does with its memory."""
    found = runnable.run(dict(inputs))
    return {spec.name: np.array(_stored(spec, found[spec.name])) for spec in runnable.outputs}


def _copies(inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Inputs that a system may write into, as some do."""
    return {name: np.array(array) for name, array in inputs.items()}


def _stored(spec: TensorSpec, array: Array) -> Array:
    """An answer as it's stored where runnables give real numbers instead; else as it came, which others judge."""
    if spec.quantization is None and not spec.dtype.startswith(ONLY_ELSEWHERE):
        return array
    try:
        return to_stored(spec, array)
    except DataError:
        return array


def _laid_otherwise(array: Array) -> Array:
    """The same numbers with gaps in between, which may not be written to."""
    if not array.ndim:
        return array
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    found = wide[..., ::2]
    found[...] = array
    found.flags.writeable = False
    return found


def _disturb(runnable: Runnable, inputs: Mapping[str, Array]) -> None:
    """Leave other numbers in a system's memory; that it may not take them (as indices, say) isn't what is asked."""
    with contextlib.suppress(Exception):
        runnable.run({name: np.ascontiguousarray(np.flip(array)) for name, array in inputs.items()})


def how_ended(stage: str, error: BaseException, case: Case) -> Suspicion:
    """What a library said first, below what was made of it; of the kind "refused" where it's no fault.

    Args:
        stage: In which.
        error: That was raised.
        case: That was tried.
    """
    root: Any = error
    while root.__cause__ is not None and (isinstance(root, ConrepairError) or not str(root)):
        root = root.__cause__
    name, words, place = type(root).__name__, str(root), _place(root)
    if isinstance(root, ToolError):
        name, words, place = root.error, root.words, root.place
    message = shortened(_FOLDERS.sub("", " ".join(_STACK.sub("", words).split())), _LONGEST)
    if isinstance(root, ToolCrashError):
        return Suspicion("crash", stage, root.signal, message)
    ours = isinstance(root, ConrepairError) and not isinstance(root, DataError | ToolError)  # says why
    refused = ours or name == "NotImplementedError" or _GAP.search(f"{name}: {message}") is not None
    if name == "KeyError":  # a table that has no such operator, or element type
        refused |= message.isdecimal() or message.strip("'") in {node.op_type for node in nodes_of(case.model.graph)}
    return Suspicion(REFUSED if refused else "exception", stage, name, message, place)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""


# How long a case takes by several settings of a system, and which optimizations make it slower.


RUNS = 9

_TIMES = 2.0
_LEAST = 1e-4  # seconds: less is what calls take, whatever they compute


def timed(case: Case, system: System, settings: Sequence[Setting], folder: Path) -> list[float]:
    """Seconds of a run by each setting: the median of `RUNS`, in turn, so that what else runs here meets all.

    Args:
        case: Any.
        system: Which.
        settings: Of it; the case's options of the system are added.
        folder: For files.

    Raises:
        Exception: whatever one of them stumbles over.
    """
    with tempfile.TemporaryDirectory(dir=folder) as made:
        model = case.file(Path(made))
        opened = [system.open(model, with_options(system, setting, case), Path(made)) for setting in settings]
        for runnable in opened:
            runnable.run(dict(case.inputs))
        took: list[list[float]] = [[] for _ in opened]
        for _ in range(RUNS):
            for runnable, seconds in zip(opened, took, strict=True):
                begun = perf_counter()
                runnable.run(dict(case.inputs))
                seconds.append(perf_counter() - begun)
    return list(map(statistics.median, took))


def slower(seconds: float, plain: float) -> Iterator[Suspicion]:
    """Suspect what takes more than twice as long as with optimizations off.

    Args:
        seconds: Of a run.
        plain: Of one with optimizations off.
    """
    if seconds > _TIMES * plain and seconds - plain > _LEAST:
        words = f"a run takes {seconds:.3g} s, and {plain:.3g} s with optimizations off"
        yield Suspicion(SLOWER, SLOWER, message=words, given=seconds, exact=plain)
