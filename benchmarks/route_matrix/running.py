"""The route matrix: a model in every format, and from each into every other, all of it verified.

A first audit loads the models, a second one makes them in all formats. A third one takes each of those files as a
source of its own and converts it into the others, so that every cell is judged against the file it came from. Where
a converter fails, in the second audit or the third, other routes around it are tried.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.route_matrix.table import FORMATS, GOOD, Cell, Matrix
from conrepair.application.config.model import AuditConfig, ConversionConfig, InputConfig, ModelConfig, RecipeConfig
from conrepair.application.pipeline.audit import run_audit
from conrepair.application.pipeline.recipes import default_recipe
from conrepair.application.report.result import AuditResult, Row
from conrepair.formats.converters.all_converters import CONVERTERS
from conrepair.formats.converters.routes import find_route
from conrepair.ground.data.binding import bind_inputs
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.errors import ConfigError, UsageError
from conrepair.ground.runtime.shown.progress import ProgressDisplay

_DETOURS = 3

_Place = tuple[str, str, str]  # model, format it starts from, format it ends in


def run_matrix(config: AuditConfig, base: Path, display: ProgressDisplay) -> Matrix:
    """Make and judge every direction of every model of a configuration; its own conversions are left aside.

    Args:
        config: Models, data, limits.
        base: Folder that relative paths start from.
        display: Shows progress.

    Raises:
        UsageError: if there are no models to start from.
    """
    sources = [
        model
        for model in config.models
        if model.compare_with is None and model.backends is None and not model.skip_analysis
    ]
    if not sources:
        raise UsageError(
            "the matrix has no model to start from: it leaves out `architectures` and models with "
            "`compare_with`, `backends` or `skip_analysis`. Give it others in $.models."
        )
    loading = _audit(config, "sources", [_to_all(model, ()) for model in sources], base, display)
    own = {row.model: row.ran.artifact.framework for row in loading.rows if row.ran.artifact and not row.problem}
    loaded = [model for model in sources if model.name in own]
    wanted = [_to_all(model, [form for form in FORMATS if form != own[model.name]]) for model in loaded]
    making = [_audit(config, "formats", wanted, base, display)] if wanted else []
    _, missing = _made(loading, making)
    origins = {(model.name, own[model.name]): model for model in loaded}
    unmade = [(name, one, two) for name, one in origins for two in FORMATS if (name, two) in missing]
    _, remaking = _around(config, "formats-detours", _cells(unmade, origins, making), origins, base, display)
    making += remaking
    made, missing = _made(loading, making)
    starts = {(model.name, form): _start(model, form, made) for model in sources for form in FORMATS}
    present = [start for start in starts.values() if start is not None]
    judged = [_audit(config, "matrix", present, base, display)] if present else []
    places = [(model.name, one, two) for model in sources for one in FORMATS for two in FORMATS if one != two]
    cells, detours = _around(config, "detours", _cells(places, starts, judged), starts, base, display)
    return Matrix(cells, made, missing, (loading, *making, *judged, *detours))


def _made(
    loading: AuditResult, making: Iterable[AuditResult]
) -> tuple[dict[tuple[str, str], Row], dict[tuple[str, str], Row]]:
    """How each model came to be in each format, and why it didn't; a source that doesn't work has the format ""."""
    made: dict[tuple[str, str], Row] = {}
    missing: dict[tuple[str, str], Row] = {}
    for row in (*loading.rows, *(row for audit in making for row in audit.rows)):
        good = row.ran.artifact is not None and row.problem is None and (not row.conversion or row.verdict in GOOD)
        if good and row.ran.artifact is not None:
            made.setdefault((row.model, row.ran.artifact.framework), row)
        elif row.kind != "intermediate":
            # The first to fail is told of, not the last detour around it.
            missing.setdefault((row.model, _end(row) if row.conversion else ""), row)
    return made, {place: row for place, row in missing.items() if place not in made}


def _audit(
    config: AuditConfig, part: str, models: Iterable[ModelConfig], base: Path, display: ProgressDisplay
) -> AuditResult:
    changes = {"name": f"{config.name}-{part}", "models": tuple(models), "architectures": ()}
    return run_audit(config.model_copy(update=changes), base, display)


def _to_all(model: ModelConfig, formats: Iterable[str]) -> ModelConfig:
    return model.model_copy(update={"conversions": tuple(ConversionConfig(to=form) for form in formats)})


def _start(model: ModelConfig, form: str, made: Mapping[tuple[str, str], Row]) -> ModelConfig | None:
    """The model in one format as a source of its own; None when it never came to be."""
    row = made.get((model.name, form))
    if row is None or row.ran.artifact is None:
        return None
    name, others = f"{model.name}.{form}", [other for other in FORMATS if other != form]
    if not row.conversion:
        return _to_all(model.model_copy(update={"name": name}), others)
    inputs = _declared(row)
    recipe = model.recipe or RecipeConfig(base=default_recipe(model)[0].name)
    start = ModelConfig(name=name, path=row.ran.artifact.path, inputs=inputs, recipe=recipe, dataset=model.dataset)
    return _to_all(start, others)


def _declared(row: Row) -> tuple[InputConfig, ...] | None:
    """What a file doesn't say about its inputs: TorchScript all, others the tables that integers index."""
    model, description = row.ran.artifact, row.ran.description
    if model is None or description is None:
        return None
    if model.framework == "torch" and not model.path.endswith(".pt2"):
        return tuple(_input(spec) for spec in model.inputs)
    highs = {spec.name: spec.high for spec in model.inputs if spec.high is not None}
    if not highs:
        return None
    specs = {spec.name: spec for spec in description.inputs}
    found = {
        item.input: highs[item.sample]
        for item in bind_inputs(model.inputs, description.inputs)
        if item.sample in highs
    }
    return tuple(_input(dataclasses.replace(specs[name], high=high)) for name, high in found.items())


def _input(spec: TensorSpec) -> InputConfig:
    return InputConfig.model_validate(
        {"name": spec.name, "shape": spec.shape, "dtype": spec.dtype, "layout": spec.layout, "high": spec.high}
    )


def _cells(
    places: Iterable[_Place], starts: Mapping[tuple[str, str], ModelConfig | None], audits: Iterable[AuditResult]
) -> dict[_Place, Cell]:
    rows = [row for audit in audits for row in audit.rows]
    return {(name, one, two): _cell(starts[name, one], one, two, rows) for name, one, two in places}


def _around(
    config: AuditConfig,
    part: str,
    cells: dict[_Place, Cell],
    starts: Mapping[tuple[str, str], ModelConfig | None],
    base: Path,
    display: ProgressDisplay,
) -> tuple[dict[_Place, Cell], list[AuditResult]]:
    """The cells with detours of those that fail, and the audits of these."""
    audits: list[AuditResult] = []
    for attempt in range(1, _DETOURS + 1):
        wanted = _detours(cells, starts)
        if not wanted:
            break
        audits.append(_audit(config, f"{part}-{attempt}", wanted, base, display))
        cells = {
            (name, one, two): _with_detour(cell, starts[name, one], two, audits[-1].rows)
            for (name, one, two), cell in cells.items()
        }
    return cells, audits


def _cell(start: ModelConfig | None, source: str, target: str, rows: Iterable[Row]) -> Cell:
    if start is None:
        return Cell("", None)
    mine = [row for row in rows if row.model == start.name]
    for row in mine:
        if row.kind == "target" and _end(row) == target:
            return Cell(row.conversion, row, culprits=_culprits(row, mine))
    return Cell(find_route(source, target).name, None)


def _culprits(row: Row, rows: Iterable[Row]) -> frozenset[str]:
    """The first converter on the way that failed."""
    failed = [
        other.conversion
        for other in (*rows, row)
        if f"{row.conversion}+".startswith(f"{other.conversion}+") and other.conversion and other.verdict not in GOOD
    ]
    return frozenset({min(failed, key=len).rpartition("+")[2].partition(",")[0]} if failed else ())


def _end(row: Row) -> str:
    """Format that a route ends in; its last converter's."""
    last = row.conversion.rpartition("+")[2].partition(",")[0]
    return CONVERTERS[last].target if last in CONVERTERS else last.removeprefix("to ")


def _detours(cells: Mapping[_Place, Cell], starts: Mapping[tuple[str, str], ModelConfig | None]) -> list[ModelConfig]:
    """For every direction that fails, the next route that leaves out the converters that failed."""
    wanted: dict[tuple[str, str], list[ConversionConfig]] = {}
    for (model, one, two), cell in cells.items():
        if cell.row is None or cell.good or cell.instead is not None:
            continue
        left = [edge for edge in CONVERTERS.values() if edge.name not in cell.culprits]
        try:
            route = find_route(one, two, left)
        except ConfigError:
            continue
        via = tuple(step.name for step in route.steps)
        wanted.setdefault((model, one), []).append(ConversionConfig(via=via))
    result = []
    for place, conversions in wanted.items():
        start = starts[place]
        if start is not None:
            result.append(start.model_copy(update={"conversions": tuple(conversions)}))
    return result


def _with_detour(cell: Cell, start: ModelConfig | None, target: str, rows: Iterable[Row]) -> Cell:
    if start is None or cell.row is None or cell.good or cell.instead is not None:
        return cell
    mine = [row for row in rows if row.model == start.name]
    tried = {cell.row.conversion, *(row.conversion for row in cell.detours)}
    for row in mine:
        if row.kind == "target" and _end(row) == target and row.conversion not in tried:
            detours = (*cell.detours, row)
            return dataclasses.replace(cell, detours=detours, culprits=cell.culprits | _culprits(row, mine))
    return cell
