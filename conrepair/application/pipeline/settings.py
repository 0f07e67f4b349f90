"""What a run is told, as plain values: a configuration or the arguments of a function say it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from conrepair.application.report.result import Place
from conrepair.application.verbs.options import Compare, Convert, Fed, Layers, Pair, Repair
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.ground.runtime.errors import ConfigError, UsageError
from conrepair.ground.runtime.plugins import Registry
from conrepair.verdicts.evaluate.own_metrics import Metric, loaded
from conrepair.verdicts.evaluate.tolerance import WITHOUT_BUDGET, Tolerance, check_names

STEPS = 4
"""Inputs in a row that make a sample of a model with a state, where nobody says how many."""

_FEW = 4  # inputs, which tell what's off by far as well as more do


class InRelease(Protocol):
    """A backend in another release of its library, for the job `execute_released`."""

    @property
    def needs(self) -> frozenset[str]:
        """What a job needs for it."""

    @property
    def format(self) -> str:
        """The format that it takes."""


RELEASES: Registry[Callable[[str, Mapping[str, Any]], InRelease | None]] = Registry("releases", {}, Callable)
"""What runs a backend, by its name and options, in the release that these name."""


@dataclass(frozen=True, kw_only=True)
class BackendChoice:
    """Where a model shall run.

    Attributes:
        name: Of the backend.
        label: How reports call it.
        options: What it's told.
        place: In parts; None for each model's own library.
        optional: Whether a device that isn't there is only said, and doesn't make the run fail.
        converts: Whether models are converted for it that it refuses in their own format.
        arithmetic: That it's said to compute in; "" where nobody says.
    """

    name: str = "libraries"
    label: str = "libraries"
    options: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = None
    optional: bool = False
    converts: bool = False
    arithmetic: str = ""

    @property
    def in_release(self) -> InRelease | None:
        """What runs it in another release of its library; None in the one that's installed.

        Raises:
            UsageError: if it can't be run in others.
        """
        if not self.options.get("release"):
            return None
        runs = next(iter(RELEASES.values()), None)
        if runs is None:
            raise UsageError("other releases of a library are run by the laboratory: pip install 'conrepair[lab]'.")
        return runs(self.name, self.options)


LIBRARIES = BackendChoice()
"""Each model in its own framework."""

DEPLOYED = BackendChoice(
    name="onnxruntime",
    label="onnxruntime",
    options={"device": "cpu", "tf32": True, "optimization": "all", "disabled_optimizers": [], "release": None},
    place=Place("onnxruntime", setting="all"),
)
"""ONNX Runtime with all its optimizations."""

AS_IT_IS = frozenset({LIBRARIES.name, DEPLOYED.name})
"""Backends that run models as they are, in any process: what other ones make of them isn't the models' own."""


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Which stages run; without `build`, `convert` or `execute` what earlier runs stored is taken."""

    build: bool = True
    convert: bool = True
    execute: bool = True
    evaluate: bool = True
    localize: bool = False
    repair: bool = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What holds for all models of a run.

    Attributes:
        layers: What a localization of any target is told; its tolerance says when answers are the same, too.
        when: Which targets' layers are looked at: of those that differ, of all, or of those alone whose difference
            rounding or the budget of quantization excuses, or whose outputs tell nothing (or that the budget
            accuses, on drawn inputs).
        layers_first: Whether layers are looked at before models run on all inputs, which then do only where a
            verdict may depend on that.
        repair: What a repair of any target may take; no other way to convert is tried after its seconds either.
        repair_targets: Whether targets whose layers are at fault are repaired.
        repair_conversions: Whether other ways are tried where a conversion gives nothing that runs.
        advice_seconds: To try other ways to convert, for each target at fault; 0: they're only named.
        metrics: A user's own, which are loaded.
        max_drop: Share of labelled samples by which an accuracy may fall, by "top1", "top5" and the like.
        stages: What is done at all.
        top_k: Classes of an answer that are compared.
        seconds: For one conversion or execution.
        compiled_seconds: After which what was compiled gets no further samples; None: it gets all.
        timed: Whether each execution has the machine to itself, so that times can be compared.
        steps: Inputs in a row that make a sample; None: one, and some of models that keep a state.
        few: Inputs that models run on at first, and on no others where targets are further off by far on these than
            anything excuses; 0: models run on all inputs.
    """

    layers: Options = field(default_factory=Options)
    when: Literal["different", "always", "excused"] = "different"
    layers_first: bool = False
    repair: RepairOptions = field(default_factory=RepairOptions)
    repair_targets: bool = True
    repair_conversions: bool = True
    advice_seconds: float = 60.0
    metrics: tuple[Metric, ...] = ()
    max_drop: Mapping[str, float] = field(default_factory=dict)
    stages: Stages = field(default_factory=Stages)
    top_k: int = 5
    seconds: float = 600.0
    compiled_seconds: float | None = None
    timed: bool = True
    steps: int | None = None
    few: int = 0

    @property
    def tolerance(self) -> Tolerance:
        """When answers are the same."""
        return self.layers.tolerance

    def check(self, outputs: Collection[str]) -> None:
        """Refuse names of outputs that no source has.

        Args:
            outputs: Of all sources.

        Raises:
            ConfigError: if there's one.
        """
        check_names("tolerance", self.tolerance.by_output, outputs, types=True)
        check_names("metric", (item.output for item in self.metrics if item.output), outputs, types=False)


def verb_settings(options: Fed, *, first: bool = False) -> Settings:
    """What the options of a verb say.

    Args:
        options: Of a verb of a model or two.
        first: Whether the first inputs, or layers, may say enough, where nobody said how many inputs are wanted; a
            repair runs both on all.

    Raises:
        ConfigError: if a tolerance is negative.
    """
    known = Settings(seconds=options.timeout, steps=options.steps)
    if isinstance(options, Convert):
        stages, repair = Stages(execute=options.check, repair=options.mend), RepairOptions(seconds=options.seconds)
        return replace(known, stages=stages, repair=repair, repair_targets=False)
    if not isinstance(options, Pair):
        return known
    tolerance = _tolerance(options)
    metrics = loaded(options.metrics, Path.cwd(), trust=options.trust)
    drop = dict(cast(Mapping[str, float], options.max_drop))  # as a verb reads it, from texts, too
    known = replace(known, metrics=metrics, max_drop=drop, when="always", stages=Stages(localize=True))
    if isinstance(options, Compare):
        known = replace(known, layers=Options(tolerance=tolerance, static=options.static))
        if options.static:
            return replace(known, stages=Stages(localize=True, execute=False, evaluate=False))
        return replace(known, when="excused", few=_FEW if first and options.samples is None else 0)
    if isinstance(options, Layers):
        layers = Options(
            tolerance=tolerance,
            samples=min(Options.samples, options.count),
            batch_size=options.batch_size,
            latent_counts=options.latent,
        )
        known = replace(known, layers=layers, layers_first=first)
    if isinstance(options, Repair):
        known = replace(
            known,
            layers_first=False,
            stages=Stages(localize=True, repair=True),
            repair=RepairOptions(seconds=options.seconds, bake_recipe=options.bake_recipe),
            repair_conversions=False,
            advice_seconds=options.advice,
        )
    return known


def _tolerance(options: Pair) -> Tolerance:
    """Of what's said in short (`rtol`, `atol`) and by name; budgets of few bits go where accuracy may fall."""
    said = dict(cast(Mapping[str, Mapping[str, float]], options.tolerance))  # as a verb reads it, from texts, too
    short = {"rtol": options.rtol, "atol": options.atol}
    given = {name: value for name, value in short.items() if value is not None}
    for name, value in given.items():
        if not value >= 0:
            raise ConfigError(f"{name} is {value:g}: give at least 0")
        if name in said.get("", {}):
            raise ConfigError(f"{name} is given twice, alone and as a tolerance: give it once")
    given |= {**said.pop("", {}), **(WITHOUT_BUDGET if options.max_drop else {})}
    return Tolerance.of(
        **given,
        noise_margin=options.margin if isinstance(options, Layers) else Tolerance.noise_margin,
        strict_signature=options.strict_signature,
        arithmetic=options.arithmetic,
        by_output=said,
    )
