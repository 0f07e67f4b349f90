"""What to do next, as commands with their reasons: consoles, pages and files say the same."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from conrepair.application.report.localization.advice import about_step, fault_advice, verdict_advice
from conrepair.application.report.result import AuditResult, Row
from conrepair.application.report.told import OF_FILES, files_of, target_rows
from conrepair.diagnosis.repairs.outcomes import RECIPE
from conrepair.formats.models.formats import BY_SUFFIX
from conrepair.ground.runtime.path_text import typed
from conrepair.ground.runtime.words import percent, shortened
from conrepair.verdicts.evaluate.verdict import Verdict
from conrepair.verdicts.judging.floor import By

_FED = {"--data", "--labels", "--classes", "--recipe", "--target-recipe", "--seed", "--low", "--high", "--input"}
_RECORDED = {".npy", ".npz"}
_MOST, _WORDS = 20, 1000


@dataclass(frozen=True)
class Step:
    """One thing to do.

    Attributes:
        why: What it does, or what there is to know.
        command: That can be pasted; "" where none does it.
    """

    why: str
    command: str = ""

    def __str__(self) -> str:
        return f"`{self.command}` {self.why}" if self.command else self.why


def sentence(steps: Sequence[Step]) -> str:
    """All in one line, with the commands in quotes."""
    return "; ".join(map(str, steps))


def next_steps(result: AuditResult) -> tuple[Step, ...]:
    """What helps now; none where nothing is known that does.

    Args:
        result: Of any verb that judges, or of an audit: there the targets that differ are gone through.
    """
    if result.kind in OF_FILES and result.rows:
        return _of_pair(result.rows[-1], result)
    rows = [row for row in target_rows(result) if result.kind == "audit" and result.exit_code_of(row)]
    return tuple(step for row in rows[:_MOST] for step in _of_target(row, result))


def pair_step(verb: str, files: Sequence[str | Path], why: str, *more: str) -> Step:
    """Another verb for an original and a converted model.

    Args:
        verb: Of ours.
        files: Both; what lies below the current folder is named from there.
        why: What it does.
        *more: Options.
    """
    return Step(why, shlex.join(["conrepair", verb, *map(typed, files), *more]))


def differing(verdict: Verdict, files: Sequence[str | Path], more: Sequence[str]) -> tuple[Step, ...]:
    """For a model that differs from its original.

    Args:
        verdict: Of its outputs.
        files: Both.
        more: Options that say what they're fed.
    """
    recorded, few = any(Path(file).suffix in _RECORDED for file in files), verdict is Verdict.QUANTIZED
    why = "the faulty layers, as far as tensors between them were saved, too" if recorded else "the faulty layers"
    layers = pair_step("localize", files, f"names {'the layers that lose most' if few else why}", *more)
    if few:
        return Step("nothing to do if this quantization was wanted"), layers
    if verdict is Verdict.UNDECIDED:
        return layers, Step("other inputs (--seed) or your own (--data) may tell")
    return (layers,) if recorded else (layers, pair_step("repair", files, "fixes the file", *more))


def _words_of(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # of a document that anybody may have written
        return []


def fed(command: str, *, but: str = "") -> list[str]:
    """The options of a command that say what models are fed, for another command.

    Args:
        command: As it was typed.
        but: One that isn't wanted.
    """
    words, found = _words_of(command), list[str]()
    for place, word in enumerate(words):
        flag, equals, _ = word.partition("=")
        if flag in _FED and flag != but:
            found += [word] if equals else words[place : place + 2]
    return [*found, *(["--trust"] if "--trust" in words else [])]


def _of_pair(row: Row, result: AuditResult) -> tuple[Step, ...]:
    """Of two files that were named."""
    files, more = _named(result), fed(result.command)
    source, named = result.rows[0], all(isinstance(file, str) and file for file in files)
    if (source is not row and source.problem is not None) or not named or row.where in result.known:
        return ()
    if row.verdict is Verdict.UNDEPLOYABLE:
        return _again(row, files)
    if (problem := row.problem or row.localized.problem or row.repaired.problem) is not None:
        return (Step(shortened(problem.explanation or problem.message, _WORDS)),)
    if result.kind == "repair" and row.repaired.result is not None:
        return _after_repair(row, result, files)
    if result.kind != "compare":
        return _of_layers(row, result, files, more)
    data = result.config.get("data") is not None
    run = source.ran.run
    random = run is not None and run.folder.is_dir() and bool(run.unsteady)  # what was read of a file has no folder
    return _of_outputs(row, files, more, data=data, random=random)


def _named(result: AuditResult) -> list[str]:
    """Both files as they stand in the command, which was typed where they're found by that; else by their paths."""
    words = _words_of(result.command)
    paths = [result.config.get(side, "") for side in ("source", "target")]
    ends = {path: [word for word in words if _is_end(word, path)] for path in paths if isinstance(path, str)}
    return [(ends.get(path) or [path])[0] for path in paths]


def _is_end(word: str, path: str) -> bool:
    parts = tuple(part for part in Path(word).parts if part != "..")
    return bool(parts) and Path(path).parts[-len(parts) :] == parts


def _of_outputs(row: Row, files: Sequence[str], more: Sequence[str], *, data: bool, random: bool) -> tuple[Step, ...]:
    if row.verdict is None:
        return ()
    if row.is_static:
        runs = pair_step("compare", files, "runs both models and tells whether their outputs differ", *more)
        return () if row.verdict is Verdict.EQUIVALENT else (runs,)
    if row.proof:
        return (Step(f"nothing to do: {row.proof}. No input can give a difference beyond rounding"),)
    if row.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}:
        if tolerated := _tolerated(row):
            return Step(tolerated), pair_step("localize", files, "names the layer that adds it", *more)
        compared = "" if data else "; your own inputs (--data) may show what random ones don't"
        arithmetic = "" if row.comparison is None else row.comparison.arithmetic
        told = f"the difference is what {arithmetic} arithmetic causes" if arithmetic else ""
        return (Step(f"nothing to do: {told or 'no difference beyond rounding on these inputs'}{compared}"),)
    if random:
        return (pair_step("localize", files, "names what differs between the files", *more),)
    if row.verdict is Verdict.FAULTY and row.localized.result is not None and row.localized.result.faults:
        return (pair_step("repair", files, "fixes the file", *more),)
    return differing(row.verdict, files, more)


def _tolerated(row: Row) -> str:
    """What is within tolerance, but more than rounding explains; "" where there's no such thing."""
    known = [] if row.comparison is None else [output.explained for output in row.comparison.outputs]
    over = [found for found in known if found is not None and found.by is By.TOLERANCE and found.is_beyond]
    if not over:
        return ""
    most = max(over, key=lambda found: found.error)
    return (
        f"nothing to do if {percent(most.error)} is accepted: it's within tolerance, but more than rounding error, "
        f"at most {percent(most.allowed)}"
    )


def _of_layers(row: Row, result: AuditResult, files: Sequence[str], more: Sequence[str]) -> tuple[Step, ...]:
    found = row.localized.result
    if found is None:
        return ()
    if found.faults:
        return (_of_fault(row, result, pair_step("repair", files, "fixes the file", *more)),)
    return (Step(verdict_advice(found, about_step(row, result, row.localized.explaining))),)


def _of_fault(row: Row, result: AuditResult, repair: Step) -> Step:
    """To repair a file at fault; where the file is right and a backend isn't, what to do about that."""
    about, found = about_step(row, result, row.localized.explaining), row.localized.result
    return Step(fault_advice(found.faults[0], about)) if found is not None and about.backend else repair


def _after_repair(row: Row, result: AuditResult, files: Sequence[str]) -> tuple[Step, ...]:
    done, build = row.repaired.result, row.ran.build is not None
    if done is None or not done.before.faults or done.interrupted or not (done.in_time or done.mended):
        return ()
    model, seed = [files[0], files[1] if done.model is None else done.model.path], result.config.get("seed")
    drawn = done.mended and result.config.get("data") is None and isinstance(seed, int)
    more = fed(result.command, but="--seed" if drawn else "")
    if done.recipe is not None:
        more += ["--target-recipe", typed(result.folder / RECIPE)]
    if not done.mended:
        return (pair_step("localize", model, "names the faults that are left", *more),)
    more += ["--seed", str(seed + 1)] if drawn and seed is not None else []
    why = f"compares both on {'other inputs' if drawn else 'the same data'}"
    return (pair_step("localize" if build else "compare", model, why, *more),)


def _of_target(row: Row, result: AuditResult) -> tuple[Step, ...]:
    """Of an audit."""
    if row.problem is not None:
        return (Step(f"{row.label}: {shortened(row.problem.explanation or row.problem.message, _WORDS)}"),)
    files = files_of(row, result)
    if row.verdict is None or not files:
        return ()
    if (found := row.localized.result) is not None and found.faults:
        return (_of_fault(row, result, pair_step("repair", files, f"fixes {row.label}")),)
    if files[0] == files[1]:
        return ()
    return (pair_step("localize", files, f"names the faulty layers of {row.label}"),)


def _again(row: Row, files: Sequence[str]) -> tuple[Step, ...]:
    """For a file that doesn't load."""
    source, target = map(Path, files)
    if target.suffix in _RECORDED:
        return ()
    framework, original = (BY_SUFFIX.get(path.suffix.lower(), "") for path in (target, source))
    if not framework:
        return (Step("make the converted model again: one that doesn't load can't be examined"),)
    if framework == original:
        return (Step("convert the original again: this file doesn't load"),)
    other = f"{target.stem}-again{target.suffix}"
    words = shlex.join(["conrepair", "convert", typed(source), "--to", framework, "-o", other])
    return (Step("converts the original again: this file doesn't load", words),)
