"""`conrepair doctor`: try what is installed, and say what to do about what doesn't work."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from conrepair.backends.registry import BACKENDS
from conrepair.converters.base import Converter
from conrepair.converters.registry import CONVERTERS
from conrepair.pipeline.job_table import JOBS
from conrepair.pipeline.next_step import command, tell_next
from conrepair.runtime.confinement import CONFINED, within_reach
from conrepair.runtime.environments import ENVIRONMENTS, PINNED_PYTHON, Environment, find_environment
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.libraries import EXTRAS, extra_of_distribution
from conrepair.runtime.progress import ProgressDisplay, output_console, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder
from conrepair.runtime.workers import Failure, Job, Workers
from conrepair.zoo.packages import cache_folder

__all__ = ["doctor"]

_PROBES = {  # the package that each stands for
    "torch": "torch",
    "torchvision": "torchvision",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "tflite": "ai-edge-litert",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "tvm": "apache-tvm",
    "opencl": "pyopencl",
}
_TIMEOUT = 180.0
_LOW_SPACE_GIB = 2
_NO_CONFINEMENT = (
    "models whose files reach beyond them need --trust; Linux 5.13 or later with Landlock and seccomp confines "
    "workers (docs/security.md)"
)


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        what: Was looked at.
        works: Whether it does.
        detail: What was seen.
        remedy: What to do if it doesn't work.
        missing: Whether it isn't installed, which nobody needs to mend who doesn't need it.
    """

    what: str
    works: bool
    detail: str
    remedy: str = ""
    missing: bool = False

    @property
    def mark(self) -> str:
        """The finding in a word, as rich shows it."""
        if self.works:
            return "[green]works[/]"
        return "[yellow]missing[/]" if self.missing else "[bold red]fails[/]"


def doctor(*, as_json: bool, quiet: bool) -> int:
    """Check frameworks, converters, backends, devices, space; nothing is changed.

    Args:
        as_json: Print JSON instead of a table.
        quiet: No progress.

    Returns:
        0 when everything that's installed works, 1 when something doesn't.
    """
    findings = list(_findings(quiet=quiet))
    if as_json:
        say(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        table = Table(box=None, show_header=False, pad_edge=False)
        for finding in findings:
            remedy = f"\n{finding.remedy}" if finding.remedy and not finding.works else ""
            table.add_row(escape(finding.what), finding.mark, escape(f"{finding.detail}{remedy}"))
        output_console().print(table)
        tell_next(_next(findings))
    works = all(finding.works or finding.missing for finding in findings)
    return int(ExitCode.EQUIVALENT if works else ExitCode.DIFFERENT)


def _next(findings: Sequence[Finding]) -> str:
    """What to do about what's broken, else about what's missing, as one command."""
    if broken := [finding for finding in findings if not finding.works and not finding.missing]:
        return f"{broken[0].what} fails: {broken[0].remedy}"
    if absent := [extra.name for extra in EXTRAS if extra.missing]:
        return f"all that's installed works; `pip install 'conrepair[{','.join(absent)}]'` brings the rest"
    return f"everything works; {command('--help')} says what can be done with it"


def _findings(*, quiet: bool) -> Iterator[Finding]:
    yield Finding("python", True, sys.version.split()[0])
    hold = within_reach(CONFINED)
    yield Finding("confinement", hold.full, f"workers are {hold}", _NO_CONFINEMENT, missing=not hold.full)
    absent = {package: extra for extra in EXTRAS for package in extra.missing}
    for extra in EXTRAS:
        lacks = ", ".join(extra.missing)
        what = f"extra {extra.name}"
        yield Finding(what, not lacks, extra.purpose + (f": no {lacks}" if lacks else ""), extra.command, bool(lacks))
    probes = _probe_all([name for name, package in _PROBES.items() if package not in absent], quiet=quiet)
    yield from probes.values()
    for converter in CONVERTERS.values():
        yield _about_converter(converter, probes)
    for name in BACKENDS:
        lacking = absent.get(_PROBES.get(name, name))
        if lacking is not None:
            yield Finding(f"backend {name}", False, f"extra {lacking.name}", lacking.command, missing=True)
        else:
            works = name not in probes or probes[name].works
            yield Finding(f"backend {name}", works, "on the CPU", _reinstall(_PROBES.get(name, name)))
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    yield Finding(
        "disk", free > _LOW_SPACE_GIB, f"{free:.1f} GiB free here", "audits keep every intermediate model: free some"
    )
    yield Finding("zoo cache", True, str(cache_folder()))
    for wanted in ENVIRONMENTS.values():
        yield _about_environment(wanted)


def _reinstall(*packages: str) -> str:
    return f"run `make setup` in a checkout, or: pip install --force-reinstall {' '.join(packages)}"


def _about_converter(converter: Converter, probes: Mapping[str, Finding]) -> Finding:
    """Whether its tools are there and work; those of extras that aren't installed are missing."""
    versions = converter.versions()
    lacks = [name for name, version in versions.items() if version == "missing"]
    broken = [need for need in converter.needs if need in probes and not probes[need].works]
    wanted = [extra_of_distribution(name) for name in lacks]
    extras = sorted({extra.name for extra in wanted if extra is not None})
    return Finding(
        f"converter {converter.name}",
        not lacks and not broken,
        f"{converter.source} to {converter.target}: "
        + ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"pip install 'conrepair[{','.join(extras)}]'"
        if extras
        else f"missing or broken: {', '.join(lacks + broken)}; {_reinstall(*lacks, *broken)}",
        missing=bool(lacks) and None not in wanted and not broken,
    )


def _about_environment(wanted: Environment) -> Finding:
    made = find_environment(wanted)
    if made is not None:
        state = f"{made.gigabytes:.1f} GB"
    elif sys.version_info[:2] == PINNED_PYTHON:
        state = "not made yet, and made when it's needed"
    else:
        state = f"only with Python {'.'.join(map(str, PINNED_PYTHON))}"
    return Finding(f"environment {wanted.name}", True, f"{wanted.purpose}: {state}")


def _probe_all(names: Sequence[str], *, quiet: bool) -> dict[str, Finding]:
    """Import each library in a worker process, so that one that crashes is only a line."""
    findings = {}
    with (
        scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch,
        ProgressDisplay(quiet=quiet) as display,
        display.stage("probe", len(names)) as stage,
        Workers(1, jobs=JOBS, folders=(scratch,)) as workers,
    ):
        for name in names:
            folder = scratch / name
            folder.mkdir()
            job = Job("probe", {"name": name}, folder, timeout=_TIMEOUT)
            outcome = workers.call(job)
            if isinstance(outcome, Failure):
                findings[name] = Finding(name, False, str(outcome), _reinstall(_PROBES[name]))
            else:
                findings[name] = Finding(name, True, str(outcome.value["detail"]))
            stage.advance(name)
    return findings
