"""What a run is told, as plain values: a configuration or the arguments of a function say it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from conrepair.application.report.result import Place
from conrepair.application.verbs.options import Compare, Convert, Localize, Pair, Repair
from conrepair.application.verbs.tolerances import max_drops, tolerances
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.ranking.suspicion_draws import SuspicionSettings
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.ground.runtime.errors import ConfigError
from conrepair.verdicts.evaluate.own_metrics import Metric, loaded
from conrepair.verdicts.evaluate.tolerance import WITHOUT_BUDGET, Tolerance, check_names

if TYPE_CHECKING:
    from conrepair.laboratory.systems.registry import InRelease

STEPS = 4
"""Inputs in a row that make a sample of a model with a state, where nobody says how many."""

_FEW = 4  # inputs, which tell what's off by far as well as more do


@dataclass(frozen=True, kw_only=True)
class BackendChoice:
    """Where a model shall run.

    Attributes:
        name: Of the backend.
        label: How reports call it.
        options: What it's told.
        place: In parts; None for each model's own library.
        optional: Whether a device that isn't there is only said, and doesn't make the run fail.
        arithmetic: That it's said to compute in; "" where nobody says.
    """

    name: str = "libraries"
    label: str = "libraries"
    options: Mapping[str, Any] = field(default_factory=dict)
    place: Place | None = None
    optional: bool = False
    arithmetic: str = ""

    @property
    def in_release(self) -> InRelease | None:
        """What runs it in another release of its library; None in the one that's installed."""
        if not self.options.get("release"):
            return None
        from conrepair.laboratory.systems.registry import released  # which takes a while to import

        return released(self.name, self.options)


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
class LayerSettings:
    """How layers at fault are looked for.

    Attributes:
        when: Which targets: those that differ, all, or those alone whose difference rounding or the budget of
            quantization excuses, or whose outputs tell nothing (or that the budget accuses, on drawn inputs).
        first: Whether they're looked at before models run on all inputs, which then do only where a verdict may
            depend on that.
        options: What a localization is told of any target.
    """

    when: Literal["different", "always", "excused"] = "different"
    first: bool = False
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, kw_only=True)
class RepairSettings:
    """How targets, and conversions that give none, are repaired.

    Attributes:
        targets: Whether targets whose layers are at fault are.
        conversions: Whether other ways are tried where a conversion gives nothing that runs.
        advice_seconds: To try other ways to convert, for each target at fault; 0: they're only named.
        options: What a repair of any target may take; no other way to convert is tried after its seconds either.
    """

    targets: bool = True
    conversions: bool = True
    advice_seconds: float = 60.0
    options: RepairOptions = field(default_factory=RepairOptions)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What holds for all models of a run.

    Attributes:
        tolerance: When answers are the same.
        metrics: A user's own, which are loaded.
        max_drop: Share of labelled samples by which an accuracy may fall, by "top1", "top5" and the like.
        layers: How layers at fault are looked for.
        repair: How they are repaired.
        stages: What is done at all.
        top_k: Classes of an answer that are compared.
        seconds: For one conversion or execution.
        compiled_seconds: After which what was compiled gets no further samples; None: it gets all.
        timed: Whether each execution has the machine to itself, so that times can be compared.
        steps: Inputs in a row that make a sample; None: one, and some of models that keep a state.
        few: Inputs that models run on at first, and on no others where targets are further off by far on these than
            anything excuses; 0: models run on all inputs.
    """

    tolerance: Tolerance = field(default_factory=Tolerance)
    metrics: tuple[Metric, ...] = ()
    max_drop: Mapping[str, float] = field(default_factory=dict)
    layers: LayerSettings = field(default_factory=LayerSettings)
    repair: RepairSettings = field(default_factory=RepairSettings)
    stages: Stages = field(default_factory=Stages)
    top_k: int = 5
    seconds: float = 600.0
    compiled_seconds: float | None = None
    timed: bool = True
    steps: int | None = None
    few: int = 0

    def check(self, outputs: Collection[str]) -> None:
        """Refuse names of outputs that no source has.

        Args:
            outputs: Of all sources.

        Raises:
            ConfigError: if there's one.
        """
        check_names("tolerance", self.tolerance.by_output, outputs, types=True)
        check_names("metric", (item.output for item in self.metrics if item.output), outputs, types=False)


def answer_settings(options: Compare, *, first: bool) -> Settings:
    """How two files' answers are compared; layers are looked at where something excuses the target.

    Args:
        options: Of the verb.
        first: Whether the first inputs may say enough, where nobody said how many are wanted.

    Raises:
        ConfigError: if a tolerance is negative.
    """
    return Settings(
        **_judged_by(options),
        layers=LayerSettings(when="always" if options.static else "excused", options=Options(static=options.static)),
        stages=Stages(localize=True, execute=not options.static, evaluate=not options.static),
        seconds=options.timeout,
        steps=options.steps,
        few=_FEW if first and options.samples is None and not options.static else 0,
    )


def _judged_by(options: Pair, noise_margin: float = Tolerance.noise_margin) -> dict[str, Any]:
    """The tolerance, of what's said in short (`rtol`, `atol`) and by name; metrics, and what accuracy may lose."""
    said = tolerances("tolerance", options.tolerance)
    both = {"rtol": options.rtol, "atol": options.atol}
    given = {name: value for name, value in both.items() if value is not None}
    for name, value in given.items():
        if not value >= 0:
            raise ConfigError(f"{name} is {value:g}: give at least 0")
        if name in said.get("", {}):
            raise ConfigError(f"{name} is given twice, alone and as a tolerance: give it once")
    given |= said.pop("", {})
    drop = max_drops("max_drop", options.max_drop)
    given |= WITHOUT_BUDGET if drop else {}
    tolerance = Tolerance.of(
        **given,
        noise_margin=noise_margin,
        strict_signature=options.strict_signature,
        arithmetic=options.arithmetic,
        by_output=said,
    )
    metrics = loaded(options.metrics, Path.cwd(), trust=options.trust)
    return {"tolerance": tolerance, "metrics": metrics, "max_drop": drop}


def layer_settings(options: Localize | Repair, *, first: bool) -> Settings:
    """How two files' layers are looked at, and the target repaired.

    Args:
        options: Of the verb.
        first: As `LayerSettings.first`; a repair runs both on all inputs.

    Raises:
        ConfigError: if a tolerance is negative.
    """
    repair = suspicious = None
    if isinstance(options, Repair):
        repair = RepairSettings(
            advice_seconds=options.advice,
            conversions=False,
            options=RepairOptions(seconds=options.seconds, bake_recipe=options.bake_recipe),
        )
    elif options.suspicious:
        suspicious = SuspicionSettings()
    return Settings(
        **_judged_by(options, noise_margin=options.margin),
        layers=LayerSettings(
            when="always",
            first=first and repair is None,
            options=Options(
                samples=min(Options.samples, options.count),
                batch_size=options.batch_size,
                latent_counts=options.latent,
                suspiciousness=suspicious,
            ),
        ),
        repair=repair or RepairSettings(),
        stages=Stages(localize=True, repair=repair is not None),
        seconds=options.timeout,
        steps=options.steps,
    )


def conversion_settings(options: Convert) -> Settings:
    """How one model is converted.

    Args:
        options: Of the verb.
    """
    return Settings(
        stages=Stages(execute=options.check, repair=options.mend),
        repair=RepairSettings(targets=False, options=RepairOptions(seconds=options.seconds)),
        seconds=options.timeout,
        steps=options.steps,
    )
