"""Results of localization, made up and real."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import onnx
import small_models as small
from localizing import localize_networks

from conrepair.application.report.localization.advice import About
from conrepair.application.report.result import AuditResult, Compared, LocalizedStep, LocalizedTarget, Row
from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.result import LayerRow, Localization, LocatedFault
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.load.framework import OnnxRunnable
from conrepair.formats.onnx.read.network import open_network
from conrepair.ground.graph.kinds import Kind
from conrepair.verdicts.evaluate.verdict import Verdict

EVIDENCE = ("pads [0, 0, 1, 1] in the converted model, [1, 1, 1, 1] in the original", "shifted by one pixel")


def row(place: int, introduced: float = 1e-7, **changes: Any) -> LayerRow:
    plain = LayerRow(
        source_tensor=f"s{place}",
        target_tensor=f"t{place}",
        source_layer=f"block/{place}/conv",
        target_layer=f"layer_{place}",
        source_operator="Conv",
        target_operator="CONV_2D",
        introduced_error=introduced,
        introduced_cosine=1.0,
        introduced_max_abs=1e-6,
        full_run_error=introduced,
        full_run_cosine=1.0,
        full_run_norm_ratio=1.0,
        noise_floor=1e-6,
        inherited=0.0,
        mismatched=0,
        layout="as it is",
        confidence=0.9,
        guilty=introduced > 1e-5,
        order=place,
    )
    return dataclasses.replace(plain, **changes)


def fault_of(guilty: LayerRow, kind: Kind = Kind.HYPERPARAMETERS, **changes: Any) -> LocatedFault:
    plain = LocatedFault(
        kind=kind,
        source_layers=(guilty.source_layer,),
        target_layers=(guilty.target_layer,),
        step="",
        introduced_error=guilty.introduced_error,
        full_run_error=guilty.full_run_error,
        noise_floor=guilty.noise_floor,
        confidence=guilty.confidence,
        evidence=EVIDENCE,
        source_tensor=guilty.source_tensor,
        target_tensor=guilty.target_tensor,
    )
    return dataclasses.replace(plain, **changes)


def made(count: int, errors: Mapping[int, float] | None = None, **changes: Any) -> Localization:
    """A network of `count` layers in the target's order, with large errors at some places."""
    errors = errors or {}
    rows = [row(place, errors.get(place, 1e-7)) for place in range(count)]
    random.Random(0).shuffle(rows)
    faults = tuple(fault_of(rows[place]) for place in range(count) if rows[place].guilty)
    verdict, reason = (Verdict.FAULTY, "`layer` introduces an error") if faults else (Verdict.NOISE, "rounding")
    seconds = {"align": 0.5, "isolate": 1.25}
    plain = Localization(
        verdict=verdict,
        reason=reason,
        faults=faults,
        layers=tuple(rows),
        unmatched_source=(),
        unmatched_target=(),
        samples=8,
        output_error=0.5,
        seconds=seconds,
    )
    return dataclasses.replace(plain, **changes)


def about(source: Path | str = "/nowhere/a.onnx", target: Path | str = "/nowhere/b.tflite") -> About:
    models = [Model(Path(path).suffix[1:], str(path), "0" * 64) for path in (source, target)]
    return About(source=models[0], target=models[1], data="8 drawn inputs")


def run_of(found: Localization, told: About, folder: Path = Path("/nowhere/out")) -> AuditResult:
    """A localization as the run that it came from."""
    step = LocalizedStep(Compared(told.source, told.target), found)
    localized = LocalizedTarget(steps=(step,))
    row = Row(model="net", conversion="", backend="libraries", kind="target", localized=localized)
    return AuditResult(
        name="run", folder=folder, rows=(row,), samples={}, datasets={}, recipes={}, pairs=(),
        versions={"numpy": "2"}, config={}, seconds=1.0, kind="localize",
    )  # fmt: skip


def wrong_pads(folder: Path) -> tuple[Localization, About]:
    """A small network against itself with its first convolution padded at the other edges."""
    source = small.onnx_convnet(folder / "source.onnx")
    changed = onnx.load(source)
    (pads,) = (item for item in changed.graph.node[0].attribute if item.name == "pads")
    pads.ints[:] = [pads.ints[2], pads.ints[3], pads.ints[0], pads.ints[1]]
    onnx.save(changed, folder / "target.onnx")
    models = [small.model_of("onnx", path) for path in (source, folder / "target.onnx")]
    inputs = [dataclasses.replace(spec, shape=(2, *spec.shape[1:])) for spec in OnnxRunnable(models[0]).inputs]
    feeds = {inputs[0].name: small.images()}
    networks = [open_network(model, inputs) for model in models]
    work = folder / "activations"
    work.mkdir()
    result = localize_networks(networks[0], networks[1], [(feeds, feeds)], work, Options()).result
    return result, About(source=models[0], target=models[1])


def with_names(result: Localization, name: str, places: Collection[int]) -> Localization:
    """Other names of layers, in the rows and in the faults."""
    tensors = {f"s{place}" for place in places}

    def renamed(item: Any, value: Any) -> Any:
        if item.source_tensor not in tensors:
            return item
        fields = [field.name for field in dataclasses.fields(item) if field.name.endswith(("_layer", "_layers"))]
        return dataclasses.replace(item, **dict.fromkeys(fields, value))

    return dataclasses.replace(
        result,
        layers=tuple(renamed(item, name) for item in result.layers),
        faults=tuple(renamed(item, (name,)) for item in result.faults),
    )
