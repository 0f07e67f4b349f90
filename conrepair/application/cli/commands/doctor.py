"""`conrepair doctor`: try what is installed, and say what to do about what doesn't work."""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from conrepair.application.cli.main import VERBS
from conrepair.application.cli.next_step import command, tell_next
from conrepair.application.config.older import OLDER
from conrepair.application.config.parts import ENGINES, PARTS
from conrepair.application.engine.job_table import REGISTERED, jobs, reach_of
from conrepair.application.jobs.gpu_probes import GPU_PROBES
from conrepair.application.pipeline.settings import RELEASES
from conrepair.diagnosis.localization.faces.diagnose import DIAGNOSES
from conrepair.formats.backends.all_backends import BACKENDS
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.base import Converter
from conrepair.formats.models.formats import FORMATS
from conrepair.ground.runtime.errors import ExitCode
from conrepair.ground.runtime.files.scratch import SCRATCH, scratch_folder
from conrepair.ground.runtime.gpu_devices import gpu_devices
from conrepair.ground.runtime.libraries import EXTRAS, extra_of_distribution
from conrepair.ground.runtime.outside.environments import ENVIRONMENTS, PINNED_PYTHON, Environment, find_environment
from conrepair.ground.runtime.plugins import FUNCTIONS, GROUP, Plugin, Registry, plugins
from conrepair.ground.runtime.processes.confinement import CONFINED, GPU, within_reach
from conrepair.ground.runtime.processes.workers import Failure, Job, Outcome, Workers
from conrepair.ground.runtime.shown.progress import ProgressDisplay, output_console, say
from conrepair.ground.zoo.packages import cache_folder

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
_BESIDE = {"tensorflow", "keras", "tflite"}
_LIBRARIES = {"inductor": "torch", "xla": "tensorflow"}  # of backends that are called otherwise
_TIMEOUT = 180.0
_LOW_SPACE_GIB = 2
_NO_GPU = "none here: no /dev/nvidia*, /dev/kfd or /dev/dri/renderD*"
_GPU_FAILS = "asked in a confined worker (docs/security.md): see whether `nvidia-smi` reaches it outside of one"
_NO_CONFINEMENT = (
    "models whose files refer to other files need --trust; Linux 5.13 or later with Landlock and seccomp confines "
    "workers (docs/security.md)"
)


_PLUGIN = "plug-in"
_KINDS = {"extra", "gpu", "converter", "backend", "environment", _PLUGIN}
_INNER = {"jobs", "gpu_jobs", "functions", "sections", "releases"}  # of plug-ins, which nobody asks for by name


_TRIED, _THERE, _FAILS = "works", "installed", "fails"
_MISSING, _NOT_MADE, _CANNOT_BE = "missing", "not made", "can't be made"
_COLOURS = {_TRIED: "green", _THERE: "default", _FAILS: "bold red"}  # the others: yellow


@dataclass(frozen=True)
class DoctorLine:
    """One line of the report.

    Attributes:
        what: Was looked at.
        state: "works" of what was tried; "installed" of what's there and wasn't; "missing", "not made" and
            "can't be made" of what isn't, which nobody needs to fix who doesn't need it; else "fails".
        detail: What was seen.
        remedy: What to do where it isn't there, or fails.
    """

    what: str
    state: str
    detail: str
    remedy: str = ""

    @property
    def works(self) -> bool:
        """Whether nothing is known to be wrong with it."""
        return self.state in {_TRIED, _THERE}

    @property
    def missing(self) -> bool:
        """Whether it isn't there."""
        return self.state in {_MISSING, _NOT_MADE, _CANNOT_BE}

    @property
    def mark(self) -> str:
        """The state, as rich shows it."""
        return f"[{_COLOURS.get(self.state, 'yellow')}]{self.state}[/]"

    def to_dict(self) -> dict[str, str | bool]:
        """As JSON values."""
        return asdict(self) | {"works": self.works, "missing": self.missing}


def doctor(options: argparse.Namespace) -> int:
    """Check frameworks, converters, backends, devices, space; nothing is changed.

    Returns:
        0 when everything that's installed works, 1 when something doesn't.
    """
    findings = list(_findings(quiet=options.quiet))
    if options.format == "json":
        say(json.dumps([finding.to_dict() for finding in findings], indent=2))
    else:
        table = Table(box=None, show_header=False, pad_edge=False)
        for finding in findings if options.verbose else _screen(findings):
            remedy = f"\n{finding.remedy}" if finding.remedy and not finding.works else ""
            table.add_row(finding.what, Text.from_markup(finding.mark), f"{finding.detail}{remedy}")
        output_console().print(table)
        tell_next(_next(findings))
    works = all(finding.works or finding.missing for finding in findings)
    return int(ExitCode.EQUIVALENT if works else ExitCode.DIFFERENT)


def _screen(findings: Sequence[DoctorLine]) -> Iterator[DoctorLine]:
    """The same on a screen: what is there of a sort in a line, and a line for each package of plug-ins."""
    for kind, group in itertools.groupby(findings, _kind):
        lines = list(group)
        broken = [line for line in lines if not line.works and not line.missing]
        yield from lines if not kind else broken
        if kind == _PLUGIN:
            packages: dict[str, list[str]] = {}
            for line in lines:
                sort, _, name = line.what.removeprefix(f"{_PLUGIN} ").partition(": ")
                if line.works and sort not in _INNER:
                    packages.setdefault(line.detail.partition(":")[0], []).append(f"{sort} {name}")
            yield from (DoctorLine(f"{_PLUGIN} {name}", _THERE, ", ".join(told)) for name, told in packages.items())
        elif kind:
            names: dict[str, list[str]] = {state: [] for state in (_TRIED, _MISSING, _NOT_MADE, _CANNOT_BE)}
            for line in lines:
                if line not in broken:
                    names[_TRIED if line.works else line.state].append(line.what.removeprefix(f"{kind} "))
            told = [", ".join(names.pop(_TRIED))]
            told += [f"{state}: {', '.join(absent)}" for state, absent in names.items() if absent]
            there = _TRIED if any(line.state == _TRIED for line in lines) else _THERE
            if told[0]:
                yield DoctorLine(f"{kind}s", there, "; ".join(told))
            elif len(broken) < len(lines):
                yield DoctorLine(f"{kind}s", lines[0].state, lines[0].detail, lines[0].remedy)


def _kind(line: DoctorLine) -> str:
    word = line.what.partition(" ")[0]
    return word if word in _KINDS else ""


def _next(findings: Sequence[DoctorLine]) -> str:
    """What to do about what's broken, else about what's missing, as one command."""
    if broken := [finding for finding in findings if not finding.works and not finding.missing]:
        return f"{broken[0].what} fails: {broken[0].remedy}"
    if absent := [extra.name for extra in EXTRAS if extra.missing]:
        return f"all that was tried works; `pip install 'conrepair[{','.join(absent)}]'` installs the rest"
    return f"all that was tried works; {command('--help')} lists the verbs"


def _findings(*, quiet: bool) -> Iterator[DoctorLine]:
    yield DoctorLine("python", _TRIED, sys.version.split()[0])
    hold = within_reach(CONFINED)
    yield DoctorLine("confinement", _TRIED if hold.full else _MISSING, f"workers are {hold}", _NO_CONFINEMENT)
    absent = {package: extra for extra in EXTRAS for package in extra.missing}
    for extra in EXTRAS:
        lacks = ", ".join(extra.missing)
        what = f"extra {extra.name}"
        purpose = extra.purpose + (f": no {lacks}" if lacks else "")
        yield DoctorLine(what, _MISSING if lacks else _THERE, purpose, extra.command)
    there = [name for name, package in _PROBES.items() if package not in absent]
    probes, gpus = _probe_all(there, quiet=quiet)
    yield from probes.values()
    devices = gpu_devices()
    yield DoctorLine("gpu devices", _THERE if devices else _MISSING, ", ".join(devices) or _NO_GPU)
    yield from gpus
    for converter in (CONVERTERS[name] for name in CONVERTERS.own):
        yield _about_converter(converter, probes)
    for name in BACKENDS.own:
        library = _LIBRARIES.get(name, name)
        lacking = absent.get(_PROBES.get(library, library))
        if lacking is not None:
            yield DoctorLine(f"backend {name}", _MISSING, f"extra {lacking.name}", lacking.command)
        else:
            state = probes[library].state if library in probes else _THERE
            yield DoctorLine(f"backend {name}", state, "on the CPU", _reinstall(_PROBES.get(library, library)))
    free = shutil.disk_usage(Path.cwd()).free / 2**30
    space = _TRIED if free > _LOW_SPACE_GIB else _FAILS
    yield DoctorLine("disk", space, f"{free:.1f} GiB free here", "audits keep every intermediate model: make room")
    yield DoctorLine("zoo cache", _THERE, str(cache_folder()))
    for wanted in ENVIRONMENTS.values():
        yield _about_environment(wanted)
    yield from map(_about_plugin, plugins())


def _about_plugin(plugin: Plugin) -> DoctorLine:
    """Whether a plug-in can be imported, is what its group takes, and has what it needs."""
    what, detail = f"plug-in {plugin.group}: {plugin.name}", f"{plugin.package} {plugin.version}: {plugin.value}"
    of_files: tuple[Registry[Any], ...] = (FORMATS, BACKENDS, CONVERTERS, DIAGNOSES)
    known = (*of_files, VERBS, PARTS, ENGINES, OLDER, RELEASES, FUNCTIONS, *REGISTERED)
    registry = next((item for item in known if item.group == plugin.group), None)
    if registry is None:
        groups = ", ".join(item.group for item in known)
        return DoctorLine(what, _FAILS, detail, f"there's no group {GROUP}{plugin.group}; there are {groups}")
    if problem := registry.problem(plugin):
        return DoctorLine(what, _FAILS, detail, problem)
    lacks = getattr(registry[plugin.name], "lacks", str)()
    return DoctorLine(what, _MISSING if lacks else _THERE, detail, lacks)


def _reinstall(*packages: str) -> str:
    return f"run `make setup` in a checkout, or: pip install --force-reinstall {' '.join(packages)}"


def _about_converter(converter: Converter, probes: Mapping[str, DoctorLine]) -> DoctorLine:
    """Whether its tools are there; those of extras and environments that aren't installed are missing."""
    versions = converter.versions()
    lacks = [name for name, version in versions.items() if version == "missing"]
    broken = [need for need in converter.needs if need in probes and not probes[need].works]
    wanted = [extra_of_distribution(name) for name in lacks]
    extras = sorted({extra.name for extra in wanted if extra is not None})
    if broken or (lacks and None in wanted):
        state = _FAILS
        remedy = f"missing or broken: {', '.join(lacks + broken)}; {_reinstall(*lacks, *broken)}"
    elif lacks:
        state, remedy = _MISSING, f"pip install 'conrepair[{','.join(extras)}]'"
    elif converter.environment is not None:
        home = _about_environment(ENVIRONMENTS[converter.environment])
        state, remedy = home.state, home.remedy
    else:
        state, remedy = _THERE, ""
    tools = ", ".join(f"{name} {version}" for name, version in versions.items())
    return DoctorLine(
        f"converter {converter.name}", state, f"{converter.source} to {converter.target}: {tools}", remedy
    )


def _about_environment(wanted: Environment) -> DoctorLine:
    what = f"environment {wanted.name}"
    made = find_environment(wanted)
    if made is not None:
        return DoctorLine(what, _THERE, f"{wanted.purpose}: {made.gigabytes:.1f} GB")
    if sys.version_info[:2] == PINNED_PYTHON:
        remedy = f"it's made when it's needed, or by `conrepair environments make {wanted.name}`"
        return DoctorLine(what, _NOT_MADE, wanted.purpose, remedy)
    needed, here = (".".join(map(str, version)) for version in (PINNED_PYTHON, sys.version_info[:2]))
    remedy = f"its versions are pinned for Python {needed}, and this is {here}: run conrepair with {needed}"
    return DoctorLine(what, _CANNOT_BE, wanted.purpose, remedy)


def _probe_all(names: Sequence[str], *, quiet: bool) -> tuple[dict[str, DoctorLine], list[DoctorLine]]:
    """Import each library in a worker process, so that one that crashes is only a line; then ask it for GPUs.

    Returns:
        Findings by library, and those of GPUs, which are asked for in a worker as they're used in.
    """
    findings: dict[str, DoctorLine] = {}
    gpus = []
    with (
        scratch_folder(Path(tempfile.gettempdir()), SCRATCH) as scratch,
        ProgressDisplay(quiet=quiet) as display,
        display.stage("trying libraries", len(names) + len(GPU_PROBES)) as stage,
        Workers(1, jobs=jobs(), folders=(scratch,)) as workers,
        Workers(1, jobs=jobs(), folders=(scratch,)) as others,
        ThreadPoolExecutor(1) as beside,
    ):

        def look(name: str, asked: Workers) -> DoctorLine:
            outcome = _asked(asked, "probe", name, scratch / name, CONFINED)
            if isinstance(outcome, Failure):
                return DoctorLine(name, _FAILS, str(outcome), _reinstall(_PROBES[name]))
            return DoctorLine(name, _TRIED, str(outcome.value))

        # Importing them takes the time: TensorFlow's side of them beside the others.
        futures = {name: beside.submit(look, name, others) for name in names if name in _BESIDE}
        found = {name: look(name, workers) for name in names if name not in futures}
        findings = {name: found[name] if name in found else futures[name].result() for name in names}
        for name in names:
            stage.advance(name)
        for name in GPU_PROBES:
            if name not in _PROBES or (name in findings and findings[name].works):
                gpus.append(_about_gpu(name, workers, scratch / f"gpu-{name}"))
            stage.advance(f"gpu {name}")
    return findings, gpus


def _asked(workers: Workers, probe: str, name: str, folder: Path, reach: str) -> Outcome:
    """What a worker says of a library, in a new folder."""
    folder.mkdir()
    return workers.call(Job(probe, {"name": name}, folder, timeout=_TIMEOUT, reach=reach))


def _about_gpu(name: str, workers: Workers, folder: Path) -> DoctorLine:
    outcome = _asked(workers, "probe_gpu", name, folder, reach_of("probe_gpu", device=GPU))
    if isinstance(outcome, Failure):
        return DoctorLine(f"gpu {name}", _FAILS, str(outcome), _GPU_FAILS)
    state, detail = map(str, outcome.value)
    return DoctorLine(f"gpu {name}", state, detail, _GPU_FAILS if state == _FAILS else "")
