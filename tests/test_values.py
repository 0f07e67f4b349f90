"""Results are read by name: a value of many fields takes them by name alone."""

import dataclasses
import importlib
import inspect

import pytest

MODULES = (
    "conrepair.verdicts.evaluate.compare",
    "conrepair.verdicts.evaluate.run",
    "conrepair.diagnosis.localization.recipes.input_relation",
    "conrepair.diagnosis.localization.options",
    "conrepair.diagnosis.localization.result",
    "conrepair.ground.metrics.statistics",
    "conrepair.ground.metrics.tensors",
    "conrepair.diagnosis.repairs.conversion.result",
    "conrepair.diagnosis.repairs.result",
    "conrepair.application.report.localization.advice",
    "conrepair.application.report.result",
)
MANY = 7


@pytest.mark.parametrize("name", MODULES)
def test_values_of_many_fields_take_them_by_name(name: str) -> None:
    module = importlib.import_module(name)
    values = [
        value
        for called, value in vars(module).items()
        if inspect.isclass(value) and dataclasses.is_dataclass(value)
        if value.__module__ == name and not called.startswith("_")
    ]
    large = [value for value in values if len(dataclasses.fields(value)) >= MANY]
    positional = [
        f"{value.__name__}.{field.name}"
        for value in large
        for field in dataclasses.fields(value)
        if field.init and not field.kw_only
    ]
    assert values
    assert not positional
