"""The result of an audit as a value."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from conrepair.diagnosis.localization.result import Localization
from conrepair.diagnosis.repairs.conversion.result import Mending
from conrepair.diagnosis.repairs.outcomes import Advice
from conrepair.diagnosis.repairs.result import RepairResult
from conrepair.formats.models.model import Description, Model
from conrepair.ground.graph.record import GraphRecord
from conrepair.ground.metrics.statistics import TimeStatistics
from conrepair.ground.runtime.errors import ConrepairError, ExitCode
from conrepair.ground.runtime.words import shortened
from conrepair.verdicts.evaluate.compare import Comparison
from conrepair.verdicts.evaluate.inputs import ComparedInput
from conrepair.verdicts.evaluate.run import Intent, Run
from conrepair.verdicts.evaluate.verdict import Verdict

RunKind = Literal["audit", "compare", "convert", "execute", "localize", "repair"]

NOT_TAKEN = "format"
"""Kind of problem: a backend doesn't take a model, and nobody asked for it by name."""

OF_THE_MODEL = frozenset({"exception", "refused", "crash", "timeout", "memory"})
"""How jobs fail by what they're given; all other kinds (`Failure.kind`) are the machine's: what it lacks, or lost."""

_ROWS, _LINE = 20, 160  # of a result as text: a screen
_LAST_WORDS = 5  # lines of what a tool printed
_OF_LAYERS = {"localize", "repair"}


_LIBRARIES, OWN = "libraries", "own library"
RUNTIMES = {
    "onnx": "ONNX Runtime",
    "torch": "PyTorch",
    "keras": "Keras",
    "tensorflow": "TensorFlow",
    "tflite": "TFLite",
    "recorded": "elsewhere",
}
"""What runs models of a framework that's called otherwise."""


@dataclass(frozen=True)
class Place:
    """Where a model ran.

    Attributes:
        library: A framework, or another backend.
        target: What code was generated for; "" where none was.
        setting: Of the optimization; "" where there's no choice.
        device: "local" for this machine.
        importer: Format that the model was read from; "" where nobody chose.
    """

    library: str
    target: str = ""
    setting: str = ""
    device: str = "local"
    importer: str = ""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why there is no result.

    Attributes:
        message: What happened.
        explanation: What it means and what to do, when the message doesn't say so.
        exit_code: That the process should return.
        circumstance: Whether the machine is to blame (no space, no memory) and not a tool or a model.
        last_words: The end of what the tool printed.
        traceback: For the log.
        kind: How a job failed, as `Failure.kind`; "" when no job did.
    """

    message: str
    explanation: str = ""
    exit_code: ExitCode = ExitCode.EXECUTION
    circumstance: bool = False
    last_words: str = ""
    traceback: str = ""
    kind: str = ""

    @property
    def is_the_models(self) -> bool:
        """Whether it says something of the model, or of the tool that took it: that it can't be used so."""
        told = self.exit_code in {ExitCode.EXECUTION, ExitCode.MODEL_LOAD}
        return told and (not self.kind or self.kind in OF_THE_MODEL)

    @classmethod
    def of(cls, error: ConrepairError) -> Problem:
        """An error of ours, for a row."""
        return cls(message=str(error), exit_code=error.exit_code)

    def as_error(self, what: str = "") -> ConrepairError:
        """As the error that a command ends with, the tool's last words included.

        Args:
            what: Written in front: the step, or what couldn't be done.
        """
        message = f"{what}: {self.message}" if what else self.message
        words = "".join(f"\n  | {line}" for line in self.last_words.splitlines()[-_LAST_WORDS:])
        error = ConrepairError("\n".join(part for part in (message, self.explanation) if part) + words)
        error.exit_code = self.exit_code
        return error


@dataclass(frozen=True)
class Build:
    """What a compiler made of a model.

    Attributes:
        folder: Where it is.
        via: Converters joined by + that made of the model what the compiler imports; "" for the model itself.
        record: What the compiler says about it: importer, passes, target, times, versions.
    """

    folder: Path
    via: str
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Compared:
    """The very files that a localization compared.

    Attributes:
        source: The model that is right.
        target: The model in question; where that's a build, what was compiled; where a backend is, what it ran.
        build: Folder of what was compiled of the target, where that was compared; "" where the target itself was.
        build_sha256: Of that folder.
        backend: That ran the target, where what it computes was compared; "" where the file was.
    """

    source: Model
    target: Model
    build: str = ""
    build_sha256: str = ""
    backend: str = ""


@dataclass(frozen=True)
class LocalizedStep:
    """One step on the way from a row's source to what it ran: what was compared, and what came out.

    Attributes:
        compared: The files.
        localization: The result.
    """

    compared: Compared
    localization: Localization

    @property
    def name(self) -> str:
        """Of the step: a conversion (of as many converters as there are), or a build."""
        return "build" if self.compared.build else self.compared.backend or "conversion"

    @property
    def is_a_backends(self) -> bool:
        """Whether that was a build, or what a backend computes, and no file."""
        return bool(self.compared.build or self.compared.backend)


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What was run for a row.

    Attributes:
        artifact: The model, when there is one.
        description: What it consists of.
        intent: Which precision was meant.
        build: What was compiled of it, where the backend is a compiler.
        run: Its outputs.
        times: Per sample, in seconds; one value for each batch but the first of each size, None without any.
        accuracy: Right answers and labelled samples.
        reused: Whether the run comes from an earlier audit.
    """

    artifact: Model | None = None
    description: Description | None = None
    intent: Intent | None = None
    build: Build | None = None
    run: Run | None = None
    times: TimeStatistics | None = None
    accuracy: tuple[int, int] | None = None
    reused: bool = False

    def __post_init__(self) -> None:
        """Check what a document may have otherwise.

        Raises:
            ValueError: if more answers are right than there are.
        """
        if self.accuracy is not None and not 0 <= self.accuracy[0] <= self.accuracy[1]:
            raise ValueError(f"{self.accuracy[0]} of {self.accuracy[1]} labelled samples can't be answered rightly")


@dataclass(frozen=True, kw_only=True)
class LocalizedTarget:
    """What became of looking for the layers that differ; nothing, where that wasn't done.

    Attributes:
        steps: All steps that were looked into, in order: for a build of a conversion that's the conversion, and
            the build beside it.
        explaining: Place of the step that explains the row.
        problem: Why that couldn't be told.
    """

    steps: tuple[LocalizedStep, ...] = ()
    explaining: int = 0
    problem: Problem | None = None

    def __post_init__(self) -> None:
        """Check the place, as a document may have any.

        Raises:
            ValueError: if there's no such step.
        """
        if not 0 <= self.explaining < max(len(self.steps), 1):
            raise ValueError(f"there is no step {self.explaining} of {len(self.steps)} that could explain the row")

    @property
    def result(self) -> Localization | None:
        """Which layers differ, in the step that explains the row; None where none was looked into."""
        return self.steps[self.explaining].localization if self.steps else None

    @property
    def own(self) -> Localization | None:
        """Of the last step: what may be repaired in what the row ran."""
        return self.steps[-1].localization if self.steps else None

    def with_own(self, **changes: Any) -> LocalizedTarget:
        """The same, with other fields of the last step."""
        return replace(self, steps=(*self.steps[:-1], replace(self.steps[-1], **changes)))


@dataclass(frozen=True, kw_only=True)
class RepairedTarget:
    """What became of repairing a target; nothing, where that wasn't tried.

    Attributes:
        result: What was repaired; the repaired model's path is absolute.
        problem: Why it couldn't be tried.
        advice: Other ways to convert, where layers are at fault, and what came of them.
        inputs: How the repaired target answers those that its row has; none where it wasn't run on them.
        verdict: Of the repaired target on the row's backend, judged as the row was; None where it wasn't run there. A
            target that ran on several backends is repaired once, in one of its rows, and judged in each.
        reason: For that verdict, in words.
    """

    result: RepairResult | None = None
    problem: Problem | None = None
    advice: tuple[Advice, ...] = ()
    inputs: tuple[ComparedInput, ...] = ()
    verdict: Verdict | None = None
    reason: str = ""

    @property
    def is_right(self) -> bool:
        """Whether a repair made the target right on its row's backend."""
        if self.result is None or (self.verdict is not None and not self.verdict.is_right):
            return self.verdict is not None and self.verdict.is_right
        return self.result.mended and bool(self.result.before.faults)

    def exit_code_of(self, found: Localization) -> int:
        """What it makes a command return.

        Args:
            found: The layers at fault before.
        """
        if self.problem is not None:
            return int(self.problem.exit_code)
        if self.result is not None and self.result.interrupted:
            return int(ExitCode.INTERRUPTED)
        right = found.is_right if self.result is None else self.result.mended
        return int(ExitCode.EQUIVALENT if right else ExitCode.DIFFERENT)


@dataclass(frozen=True, kw_only=True, repr=False)
class Row:
    """One model on one backend: what was run, compared, localized and repaired.

    Attributes:
        model: Name of the configured source model.
        conversion: Converters joined by +, "" for the source itself.
        backend: Where it ran.
        kind: "reference", "target", or "intermediate" (a step on the way of a route).
        reference: Name of the configured model that is the specification.
        place: The backend in parts.
        verdict: Against the reference; None for the reference and where there's a problem that isn't the
            conversion's.
        reason: In words.
        problem: Why something is missing.
        ran: The model, and what came of running it.
        comparison: With the reference.
        inputs: That differ most from the reference: first those with another answer, then by their error.
        localized: The layers at fault.
        repaired: What was repaired.
        mending: What was tried where a conversion gave nothing.
        instead_of: The conversion that this one stands in for, having repaired it.
    """

    model: str
    conversion: str
    backend: str
    kind: str
    reference: str = ""
    place: Place | None = None
    verdict: Verdict | None = None
    reason: str = ""
    problem: Problem | None = None
    ran: Ran = field(default_factory=Ran)
    comparison: Comparison | None = None
    inputs: tuple[ComparedInput, ...] = ()
    localized: LocalizedTarget = field(default_factory=LocalizedTarget)
    repaired: RepairedTarget = field(default_factory=RepairedTarget)
    mending: Mending | None = None
    instead_of: str = ""

    def __repr__(self) -> str:
        return f"<Row {self}>"

    def __str__(self) -> str:
        found = self.reason if self.verdict is None else f"{self.verdict.value}, {self.reason}"
        return shortened(f"{self.label} on {self.ran_by}: {found}", _LINE)

    @property
    def name(self) -> str:
        """The model's name in an audit, on any backend."""
        return f"{self.model}/{self.conversion or 'source'}"

    @property
    def label(self) -> str:
        """The same for a person: a model that nobody here converted is called by its own name alone."""
        return f"{self.model}/{self.conversion}" if self.conversion else self.model

    @property
    def where(self) -> str:
        """The model's name with its backend: no two rows of a run have the same."""
        return f"{self.name} on {self.backend}"

    @property
    def ran_by(self) -> str:
        """The runtime for a person: a model's own library by its name, any other backend by the name in the run."""
        framework = "" if self.ran.artifact is None else self.ran.artifact.framework
        return RUNTIMES.get(framework, framework or OWN) if self.backend == _LIBRARIES else self.backend

    @property
    def is_static(self) -> bool:
        """Whether its layers were compared by the files alone, and nothing was run."""
        return self.comparison is None and self.localized.result is not None and self.localized.result.options.static

    @property
    def proof(self) -> str:
        """How its files prove that it computes what its source does, whatever it's fed; "" where they don't."""
        found = self.localized.result
        proven = found is not None and found.options.static and found.verdict is Verdict.EQUIVALENT
        return found.reason if found is not None and proven else ""

    @property
    def exit_code(self) -> int:
        """What this row alone would make the process return."""
        if self.problem is not None:
            return int(self.problem.exit_code)
        differs = self.verdict in {Verdict.FAULTY, Verdict.UNDECIDED}
        return int(ExitCode.DIFFERENT if differs else ExitCode.EQUIVALENT)


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult:
    """A whole audit.

    Attributes:
        name: From the configuration.
        folder: Of the outputs.
        rows: In the configuration's order.
        samples: Names of the samples, by dataset description.
        datasets: Dataset (in words) of each source model.
        seeds: Of what was drawn, by source model.
        recipes: Preprocessing of each source model, as JSON; None where there are no photos.
        pairs: Comparisons of each run with every other of the same source, reference excluded.
        versions: Of the libraries.
        config: As it was used.
        seconds: Wall time.
        notes: What a person should know.
        architectures: Names of the models that are architectures of a list.
        kind: What was asked for: "compare", "localize", "repair", "convert", "execute" or "audit".
        command: That makes it again; "" where Python called.
        graphs: Of the models that were looked into, by their SHA-256; in memory each localization has its own.
        known: Why a target's difference is known and makes no command fail, by its name and backend ("net/source on
            libraries"): of a baseline. Of a target that fails for something new, by its known faults, too
            ("net/source on libraries: parameters at fc").
    """

    name: str
    folder: Path
    rows: tuple[Row, ...]
    samples: Mapping[str, tuple[str, ...]]
    datasets: Mapping[str, str]
    recipes: Mapping[str, Any]
    pairs: tuple[Comparison, ...]
    versions: Mapping[str, str]
    config: Mapping[str, Any]
    seconds: float
    top_k: int = 5
    notes: tuple[str, ...] = field(default=())
    architectures: tuple[str, ...] = ()
    seeds: Mapping[str, int] = field(default_factory=dict)
    kind: RunKind = "audit"
    command: str = ""
    graphs: Mapping[str, GraphRecord] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<AuditResult {self}>"

    def __str__(self) -> str:
        left = len(self.rows) - _ROWS
        lines = [f"{self.name}, {len(self.rows)} rows", *map(str, self.rows[:_ROWS])]
        return "\n".join([*lines, f"and {left} more"] if left > 0 else lines)

    def with_row(self, row: Row) -> AuditResult:
        """The same, with a row in the place of the one of its model, conversion and backend."""
        who = row.name, row.backend
        rows = tuple(row if (item.name, item.backend) == who else item for item in self.rows)
        return replace(self, rows=rows)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from conrepair.application.report.page.page import notebook_html  # it's made of this

        return notebook_html(self)

    @cached_property
    def places(self) -> Mapping[int, int]:
        """Places of the rows, by their `id`."""
        return {id(row): place for place, row in enumerate(self.rows)}

    @property
    def comparisons(self) -> list[Comparison]:
        """Of the rows with their reference, then the pairs."""
        return [row.comparison for row in self.rows if row.comparison is not None] + list(self.pairs)

    @property
    def exit_code(self) -> int:
        """The worst of the rows'; of a localization and of a repair, that of what was asked about: the last one."""
        asked = self.rows[-1:] if self.kind in _OF_LAYERS else self.rows
        return max((self.exit_code_of(row) for row in asked), default=int(ExitCode.USAGE))

    def is_on_the_way(self, row: Row) -> bool:
        """Whether a row is a step to targets that are all right by now, by what a repair made of what came of it."""
        if row.kind != "intermediate":
            return False
        ways = [other for other in self.rows if other.kind == "target" and other.model == row.model]
        made = [other for other in ways if other.conversion.startswith(f"{row.conversion}+")]
        right = [other.verdict is not None and other.verdict.is_right for other in made]
        mended = [other.repaired.is_right for other in made]
        return any(mended) and all(map(operator.or_, right, mended))

    def exit_code_of(self, row: Row) -> int:
        """What a row alone would make the command return: by its answers, its layers, or what a repair left.

        A target of an audit that a repair made right on its backend is as good as one that was right; so are a step
        on the way to such targets, and one whose difference is known.

        Args:
            row: Of this run.
        """
        if row.where in self.known:
            return int(ExitCode.EQUIVALENT)
        found = row.localized.own if self.kind in _OF_LAYERS else None
        if found is None:
            mended = row.problem is None and (row.repaired.is_right or self.is_on_the_way(row))
            return int(ExitCode.EQUIVALENT) if mended else row.exit_code
        return row.repaired.exit_code_of(found)
