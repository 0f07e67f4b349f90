"""The route matrix: a model in every format, and from each into every other, all of it verified.

A first audit makes the model in all formats. A second one takes each of those files as a source of its own and
converts it into the others, so that every cell is judged against the file it came from. Where a converter fails,
other routes around it are tried.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path

from conrepair.config.model import AuditConfig, ConversionConfig, InputConfig, ModelConfig, RecipeConfig
from conrepair.converters.registry import CONVERTERS
from conrepair.converters.routes import find_route
from conrepair.data.tensor_spec import TensorSpec
from conrepair.frameworks.model import Model
from conrepair.pipeline.audit import run_audit
from conrepair.pipeline.recipes import default_recipe
from conrepair.report.result import AuditResult, Row
from conrepair.report.route_matrix import FORMATS, GOOD, Cell, Matrix
from conrepair.runtime.errors import ConfigError, UsageError
from conrepair.runtime.progress import ProgressDisplay

__all__ = ["run_matrix"]

_DETOURS = 3


def run_matrix(config: AuditConfig, base: Path, display: ProgressDisplay) -> Matrix:
    """Make and judge every direction of every model of a configuration; its own conversions are left aside.

    Args:
        config: Models, data, limits.
        base: Folder that relative paths start from.
        display: Shows progress.

    Raises:
        UsageError: if there are no models to start from.
    """
    sources = [model for model in config.models if model.compare_with is None and not model.skip_analysis]
    if not sources:
        raise UsageError("the matrix needs models: $.models is empty. `architectures` are not part of a matrix.")
    making = _audit(config, "formats", [_to_all(model, FORMATS) for model in sources], base, display)
    made: dict[tuple[str, str], Row] = {}
    for row in making.rows:
        if row.artifact is not None and (row.kind == "reference" or row.verdict in GOOD):
            made.setdefault((row.model, row.artifact.framework), row)
    starts = {(model.name, form): _start(model, form, made) for model in sources for form in FORMATS}
    present = [start for start in starts.values() if start is not None]
    judged = _audit(config, "matrix", present, base, display)
    cells = {
        (model.name, one, two): _cell(starts[model.name, one], two, judged.rows)
        for model in sources
        for one in FORMATS
        for two in FORMATS
        if one != two
    }
    audits = [making, judged]
    for attempt in range(1, _DETOURS + 1):
        around = _detours(cells, starts)
        if not around:
            break
        audits.append(_audit(config, f"detours-{attempt}", around, base, display))
        cells = {place: _with_detour(place, cell, audits[-1].rows) for place, cell in cells.items()}
    return Matrix(cells, made, tuple(audits))


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
    if row is None or row.artifact is None:
        return None
    name, others = f"{model.name}.{form}", [other for other in FORMATS if other != form]
    if not row.conversion:
        return _to_all(model.model_copy(update={"name": name}), others)
    inputs = _declared(row.artifact)
    recipe = model.recipe or RecipeConfig(base=default_recipe(model)[0].name)
    start = ModelConfig(name=name, path=row.artifact.path, inputs=inputs, recipe=recipe, dataset=model.dataset)
    return _to_all(start, others)


def _declared(model: Model) -> tuple[InputConfig, ...] | None:
    """Inputs, for the one format that doesn't record them."""
    if model.framework != "torch" or model.path.endswith(".pt2"):
        return None
    return tuple(_input(spec) for spec in model.inputs)


def _input(spec: TensorSpec) -> InputConfig:
    return InputConfig.model_validate(
        {"shape": spec.shape, "dtype": spec.dtype, "layout": spec.layout, "high": spec.high}
    )


def _cell(start: ModelConfig | None, target: str, rows: Iterable[Row]) -> Cell:
    if start is None:
        return Cell("", None)
    mine = [row for row in rows if row.model == start.name]
    for row in mine:
        if row.kind == "target" and _end(row) == target:
            return Cell(row.conversion, row, culprits=_culprits(row, mine))
    return Cell(find_route(start.name.rpartition(".")[2], target).name, None)


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


def _detours(
    cells: Mapping[tuple[str, str, str], Cell], starts: Mapping[tuple[str, str], ModelConfig | None]
) -> list[ModelConfig]:
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


def _with_detour(place: tuple[str, str, str], cell: Cell, rows: Iterable[Row]) -> Cell:
    if cell.good or cell.instead is not None or cell.row is None:
        return cell
    model, one, two = place
    mine = [row for row in rows if row.model == f"{model}.{one}"]
    tried = {cell.row.conversion, *(row.conversion for row in cell.detours)}
    for row in mine:
        if row.kind == "target" and _end(row) == two and row.conversion not in tried:
            detours = (*cell.detours, row)
            return dataclasses.replace(cell, detours=detours, culprits=cell.culprits | _culprits(row, mine))
    return cell
