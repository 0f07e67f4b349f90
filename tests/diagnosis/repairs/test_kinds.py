"""A repair can be confined to sorts of edits."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from localized import WEIGHTS, Variant

from conrepair.diagnosis.localization.options import Options
from conrepair.diagnosis.localization.run.fed_model import FedModel
from conrepair.diagnosis.repairs.edits import (
    AddOutput,
    ComputeInFloat,
    DropOutput,
    Edit,
    ExchangeInputs,
    ExchangeOutputs,
    Graft,
    MoveOutputs,
    Remove,
    Requantize,
    SetAttributes,
    SetInputShapes,
    SetParameter,
    SetRange,
    SetRecipe,
    kind_of,
)
from conrepair.diagnosis.repairs.options import RepairOptions
from conrepair.diagnosis.repairs.repair import repair_models
from conrepair.formats.editing.open_editor import open_editor
from conrepair.formats.editing.operation import Operation
from conrepair.formats.models.model import Model
from conrepair.formats.models.registry import framework
from conrepair.ground.data.feeds import DataReference
from conrepair.ground.data.pictures.recipe import Recipe
from conrepair.ground.graph.kinds import EditKind

_TURNED = {"before": "t = Transpose <perm = [0, 1, 3, 2]> (image)", "begin": "t"}


def test_every_sort_is_known(tmp_path: Path) -> None:
    graph = open_editor(Variant(size=(12, 12), **_TURNED).write(tmp_path / "net.onnx")).graph
    turn = next(node.name for node in graph.nodes if node.op == "Transpose")
    other = next(node.name for node in graph.nodes if node.op != "Transpose")
    put_in = Operation("Transpose", ("image",), {"perm": (0, 1, 3, 2)}), Operation("Relu", ("image",), {})
    expected: dict[Edit, EditKind] = {
        SetRecipe(Recipe("raw"), ("BGR instead of RGB",)): "recipe",
        ExchangeInputs(0, 1): "inputs",
        SetInputShapes(((None, None, 12, 12),)): "sizes",
        ExchangeOutputs(0, 1): "outputs",
        MoveOutputs(0, 1): "outputs",
        AddOutput("image"): "outputs",
        DropOutput(1): "outputs",
        SetRange("image", 0.0, 1.0): "precision",
        Remove(turn): "transposes",
        Remove(other): "operators",
    }
    for edit, kind in expected.items():
        assert kind_of(edit, graph) == kind
    found = set(expected.values())
    unhashable: list[tuple[Edit, EditKind]] = [
        (SetParameter(other, "weight", np.ones(1, np.float32)), "parameters"),
        (Requantize(other, "weight", np.ones(1, np.float32)), "precision"),
        (ComputeInFloat("image", put_in), "precision"),
        (SetAttributes(other, {"axis": 1}), "attributes"),
        (SetAttributes(turn, {"perm": (0, 1, 2, 3)}), "transposes"),
        (Graft("image", put_in[:1]), "transposes"),
        (Graft("image", put_in), "operators"),
    ]
    for edit, kind in unhashable:
        assert kind_of(edit, graph) == kind
        found.add(kind)
    assert found == set(get_args(EditKind))


@pytest.mark.parametrize(
    ("kinds", "repaired"), [({"parameters"}, True), ({"recipe", "attributes", "outputs"}, False)]
)
def test_other_edits_are_not_made(kinds: set[EditKind], repaired: bool, tmp_path: Path) -> None:
    def subject(model: Model) -> FedModel:
        inputs = framework("onnx").describe(model).inputs
        return FedModel(model, inputs, DataReference("synthetic", 8, samples=inputs), None)

    right = Variant().write(tmp_path / "right.onnx")
    wrong = Variant(weights={"inner": 2 * WEIGHTS["inner"]}).write(tmp_path / "wrong.onnx")
    options = RepairOptions(Options(samples=4, batch_size=4), 30, 4)
    options = dataclasses.replace(options, edits=frozenset(kinds))
    result = repair_models(subject(right), subject(wrong), tmp_path / "out", options)
    assert (result.mended, bool(result.edits), result.in_time) == (repaired, repaired, True)
