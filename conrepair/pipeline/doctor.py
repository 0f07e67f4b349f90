"""`conrepair doctor`: try what is installed, and say what to do about what doesn't work."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from conrepair.backends.registry import BACKENDS
from conrepair.converters.registry import CONVERTERS
from conrepair.runtime.environments import ENVIRONMENTS, find_environment
from conrepair.runtime.errors import ExitCode
from conrepair.runtime.progress import ProgressDisplay, output_console, say
from conrepair.runtime.scratch import SCRATCH, scratch_folder
from conrepair.runtime.workers import Failure, Job, Workers
from conrepair.zoo.packages import cache_folder

__all__ = ["doctor"]

_PROBES = ("torch", "torchvision", "tensorflow", "keras", "tflite", "onnx", "onnxruntime", "tvm", "opencl")
_TIMEOUT = 180.0
_LOW_SPACE_GIB = 2
_REINSTALL = "run `make setup`, or pip install -r requirements.txt in this environment"


@dataclass(frozen=True)
class Finding:
    """One line of the report: what, whether it works, details, and what to do if it doesn't."""

    what: str
    works: bool
    detail: str
    remedy: str = ""


def doctor(*, as_json: bool, quiet: bool) -> int:
    """Check frameworks, converters, backends, devices, space; nothing is changed.

    Args:
        as_json: Print JSON instead of a table.
        quiet: No progress.

    Returns:
        0 when everything works, 1 when something doesn't.
    """
    findings = list(_findings(quiet=quiet))
    if as_json:
        say(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        table = Table(box=None, show_header=False, pad_edge=False)
        for finding in findings:
            mark = "[green]works[/]" if finding.works else "[bold red]fails[/]"
            remedy = f"\n{finding.remedy}" if finding.remedy and not finding.works else ""
            table.add_row(escape(finding.what), mark, escape(f"{finding.detail}{remedy}"))
        output_console().print(table)
    works = all(finding.works for finding in findings)
    return int(ExitCode.EQUIVALENT if works else ExitCode.DIFFERENT)


def _findings(*, quiet: bool) -> Iterator[Finding]:
    yield Finding("python", sys.version_info[:2] == (3, 11), sys.version.split()[0], "use Python 3.11")
    probes = _probe_all(quiet=quiet)
    yield from probes.values()
    for converter in CONVERTERS.values():
        versions = converter.versions()
        missing = [name for name, version in versions.items() if version == "missing"]
        broken = [need for need in converter.needs if need in probes and not probes[need].works]
        detail = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield Finding(
            f"converter {converter.name}",
            not missing and not broken,
            f"{converter.source} to {converter.target}: {detail}",
            f"missing or broken: {', '.join(missing + broken)}; {_REINSTALL}",
        )
    for name in BACKENDS:
        works = name not in probes or probes[name].works
        yield Finding(f"backend {name}", works, "on the CPU", _REINSTALL)
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    yield Finding(
        "disk", free > _LOW_SPACE_GIB, f"{free:.1f} GiB free here", "audits keep every intermediate model: free some"
    )
    yield Finding("zoo cache", True, str(cache_folder()))
    for wanted in ENVIRONMENTS.values():
        made = find_environment(wanted)
        state = f"{made.gigabytes:.1f} GB" if made else "not made yet, and made when it's needed"
        yield Finding(f"environment {wanted.name}", True, f"{wanted.purpose}: {state}")


def _probe_all(*, quiet: bool) -> dict[str, Finding]:
    """Import each framework in a worker process, so that one that crashes is only a line."""
    findings = {}
    with (
        scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch,
        ProgressDisplay(quiet=quiet) as display,
        display.stage("probe", len(_PROBES)) as stage,
        Workers(1) as workers,
    ):
        for name in _PROBES:
            folder = scratch / name
            folder.mkdir()
            job = Job("conrepair.pipeline.probes:probe", {"name": name}, folder, timeout=_TIMEOUT)
            outcome = workers.call(job)
            if isinstance(outcome, Failure):
                findings[name] = Finding(name, False, str(outcome), _REINSTALL)
            else:
                findings[name] = Finding(name, True, str(outcome.value["detail"]))
            stage.advance(name)
    return findings
