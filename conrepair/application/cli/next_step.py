"""The last line of a verb: what to do next, as a command that can be typed."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from conrepair.application.verbs.options import Convert
from conrepair.formats.models.detect import detect_framework
from conrepair.formats.models.formats import RECORDED
from conrepair.ground.runtime.shown.progress import output_console
from conrepair.verdicts.evaluate.verdict import Verdict

if TYPE_CHECKING:
    from conrepair.application.report.result import Row

_DRAWN: dict[str, float | None] = {"seed": 0, "low": None, "high": None}  # what they are where nobody says


def tell_next(line: str) -> None:
    """Say it, whole: a command that is broken into lines can't be pasted.

    Args:
        line: "" where there's nothing to say.
    """
    if line:
        output_console().print(Text.assemble(("next: ", "bold"), line), soft_wrap=True)


def command(verb: str, *words: str | Path, inputs: Sequence[str] = ()) -> str:
    """A command that can be pasted, in quotes.

    Args:
        verb: Of ours.
        *words: Its arguments; what lies below the current folder is named from there.
        inputs: Values of --input.
    """
    given = [word for text in inputs for word in ("--input", text)]
    return f"`{shlex.join(['conrepair', verb, *map(_typed, words), *given])}`"


def after_comparison(row: Row, options: argparse.Namespace, *, random: bool = False) -> str:
    """What helps once two files were compared; "" where nothing is known.

    Args:
        row: Of the target.
        options: Of the command line that compared.
        random: Whether the source is, so that no repair could be judged.
    """
    if row.verdict is Verdict.UNDEPLOYABLE:
        return _again(row, options)
    if row.verdict is None or row.problem is not None:
        return ""
    if row.localized.problem is not None:
        return row.localized.problem.explanation
    if row.is_static:
        runs = f"{_pair('compare', options, options.source, options.target)} runs both models"
        return "" if row.verdict is Verdict.EQUIVALENT else f"{runs}, which tells whether their outputs differ"
    if row.proof:
        return f"{row.proof}; no input can show more than rounding"
    if row.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}:
        compared = "" if options.data is not None else "; inputs of your own (--data) may show what drawn ones don't"
        arithmetic = "" if row.comparison is None else row.comparison.arithmetic
        if arithmetic:
            return f"what differs is what {arithmetic} makes{compared}"
        return f"no difference beyond rounding on these inputs{compared}"
    if random:
        return f"{_pair('localize', options, options.source, options.target)} names what differs between the files"
    return _where_it_differs(row.verdict, options, options.source, options.target)


def after_conversion(row: Row, options: argparse.Namespace, output: Path) -> str:
    """What helps once a model was converted; "" where nothing is known.

    Args:
        row: Of the result.
        options: Of the command line that converted.
        output: The result's file or folder.
    """
    if not options.check:
        return f"{_pair('compare', options, options.model, output)} compares both models' answers"
    if row.verdict is None or row.problem is not None:
        return ""
    if row.localized.problem is not None:
        return row.localized.problem.explanation
    if row.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}:
        if options.data is None:
            more = str(8 * (options.samples or Convert.drawn))
            more = _pair("compare", options, options.model, output, "--samples", more)
            return f"{more} compares them on more inputs"
        return f"{command('inspect', output)} lists what the file consists of"
    return _where_it_differs(row.verdict, options, options.model, output)


def after_repair(options: argparse.Namespace, model: Path, *, right: bool, build: bool, recipe: Path | None) -> str:
    """What helps once a target was repaired, or in part.

    Args:
        options: Of the command line that repaired.
        model: The target as it is now.
        right: Whether nothing is left.
        build: Whether it's a build, of which only layers are compared.
        recipe: How its inputs are to be prepared, where that was at fault.
    """
    if recipe is not None:
        options = argparse.Namespace(**(vars(options) | {"target_recipe": str(_typed(recipe))}))
    if not right:
        return f"{_pair('localize', options, options.source, model)} shows what is left"
    if options.data is None:
        options = argparse.Namespace(**(vars(options) | {"seed": options.seed + 1}))
    where = "other inputs" if options.data is None else "the same data"
    return f"{_pair('localize' if build else 'compare', options, options.source, model)} compares both on {where}"


def _is_build(path: Path) -> bool:
    from conrepair.application.pipeline.pair import (
        is_build,  # imports the libraries of models, which some verbs do without
    )

    return is_build(path)


def _where_it_differs(verdict: Verdict, options: argparse.Namespace, source: str | Path, target: str | Path) -> str:
    layers = _pair("localize", options, source, target)
    if verdict is Verdict.QUANTIZED:
        return f"nothing, if these bits are what was wanted; else {layers} names the layers that lose most"
    if verdict is Verdict.UNDECIDED:
        return f"{layers} tells layers apart; other inputs (--seed, or your own with --data) may decide"
    files = [Path(path) for path in (source, target) if not _is_build(Path(path))]
    if RECORDED in (detect_framework(path, recorded=True) for path in files):
        return f"{layers} names the layers at fault, by tensors on the way that were recorded, too"
    return f"{layers} names the layers at fault, {_pair('repair', options, source, target)} fixes the file"


def _again(row: Row, options: argparse.Namespace) -> str:
    """For a target that doesn't load."""
    target = Path(options.target)
    if _is_build(target):
        return "build the target anew: one that doesn't load can't be looked into"
    framework = detect_framework(target, recorded=True)
    if framework == RECORDED:
        return ""
    if framework == detect_framework(Path(options.source), recorded=True):
        return "convert the target anew"
    other = f"{target.stem}-anew{target.suffix}"
    words = command("convert", options.source, "--to", framework, "-o", other)
    return f"convert the target anew: {words}"


def _pair(verb: str, options: argparse.Namespace, source: str | Path, target: str | Path, *more: str) -> str:
    """Another verb for two files, with the inputs that were given."""
    words: list[str | Path] = [source, target]
    for name in ("data", "recipe", "target_recipe"):
        if getattr(options, name, None) is not None:
            words += [f"--{name.replace('_', '-')}", getattr(options, name)]
    for name, usual in _DRAWN.items() if options.data is None else ():
        if getattr(options, name) != usual:
            words += [f"--{name}", f"{getattr(options, name):g}"]
    trusted = ["--trust"] if options.trust else []
    return command(verb, *words, *trusted, *more, inputs=options.inputs)


def _typed(word: str | Path) -> str:
    """A path as a person would type it here; a file whose name begins as options do isn't one."""
    if isinstance(word, str):
        return f"./{word}" if word.startswith("-") and Path(word).exists() else word
    here = Path.cwd()
    return str(word.relative_to(here) if word.is_relative_to(here) else word)
