"""What to do after a comparison of two files, as a command that can be typed."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from conrepair.config.model import SyntheticConfig
from conrepair.evaluate.verdict import Verdict
from conrepair.frameworks.detect import detect_framework
from conrepair.report.result import AuditResult, Row

__all__ = ["next_step"]

_DRAWN = ("seed", "low", "high")


def next_step(result: AuditResult, options: argparse.Namespace) -> str:
    """What helps further, in one line; "" where nothing is known.

    Args:
        result: Of the comparison; its last row is the target's.
        options: Of the command line that compared.
    """
    row = result.rows[-1]
    if row.verdict is Verdict.UNDEPLOYABLE:
        return _anew(row, options)
    if row.verdict is None or row.problem is not None:
        return ""
    layers = f"`{_command('localize', options, 'layers')}`"
    if row.verdict in {Verdict.EQUIVALENT, Verdict.NOISE}:
        compared = "" if options.data is not None else "; inputs of your own (--data) may show what drawn ones don't"
        return f"no difference beyond rounding on these inputs{compared}"
    if row.verdict is Verdict.QUANTIZED:
        return f"nothing, if these bits are what was wanted; else {layers} names the layers that lose most"
    if row.verdict is Verdict.UNDECIDED:
        return f"{layers} tells layers apart; other inputs (--seed, or your own with --data) may decide"
    return f"{layers} names the layers at fault, `{_command('repair', options, 'repaired')}` mends the file"


def _anew(row: Row, options: argparse.Namespace) -> str:
    """For a target that doesn't load."""
    target = Path(options.target)
    framework = detect_framework(target)
    if row.ran.artifact is None and framework == detect_framework(Path(options.source)):
        return "make the target anew: one that doesn't load can't be mended"
    other = f"{target.stem}-anew{target.suffix}"
    words = shlex.join(["conrepair", "convert", options.source, "--to", framework, "-o", other])
    return f"make the target anew, one that doesn't load can't be mended: `{words}`"


def _command(verb: str, options: argparse.Namespace, folder: str) -> str:
    """Another verb for the same files, with the same inputs."""
    usual = SyntheticConfig()
    words = ["conrepair", verb, options.source, options.target]
    for name in ("data", "recipe", "target_recipe"):
        if getattr(options, name) is not None:
            words += [f"--{name.replace('_', '-')}", getattr(options, name)]
    for name in _DRAWN if options.data is None else ():
        if getattr(options, name) != getattr(usual, name):
            words += [f"--{name}", f"{getattr(options, name):g}"]
    for text in options.input:
        words += ["--input", text]
    return shlex.join([*words, "-o", folder])
