"""Calling "package.module:function"."""

from __future__ import annotations

import collections
from pathlib import Path

import pytest

from conrepair.formats.models.factories import call_factory, factory_code
from conrepair.formats.models.model import Factory
from conrepair.ground.runtime.errors import ModelLoadError


def test_a_function_with_arguments() -> None:
    assert call_factory(Factory("fractions:Fraction", {"numerator": 3, "denominator": 6})) == 0.5


def test_a_nested_name() -> None:
    assert call_factory(Factory("collections:OrderedDict.fromkeys", {"iterable": "ab"})) == collections.OrderedDict(
        a=None, b=None
    )


def test_a_module_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_nets_of_this_test.py").write_text("def small(depth=1):\n    return ['layer'] * depth\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert call_factory(Factory("my_nets_of_this_test:small", {"depth": 2})) == ["layer", "layer"]


def test_the_code_of_a_factory_is_that_of_its_module_its_package_and_their_neighbours(tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text("import blocks")
    (tmp_path / "blocks.py").write_text("SIZE = 1")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "deep.py").write_text("x = 1")
    codes = [factory_code("nets:build", tmp_path), factory_code("package.deep:build", tmp_path)]
    assert codes == [factory_code("nets:build", tmp_path), factory_code("package.deep:build", tmp_path)]
    (tmp_path / "blocks.py").write_text("SIZE = 2")
    assert factory_code("nets:build", tmp_path) != codes[0]
    (tmp_path / "package" / "deep.py").write_text("x = 2")
    assert factory_code("package.deep:build", tmp_path) != codes[1]
    assert factory_code("torchvision.models:resnet18", tmp_path) == "", "the fingerprint has its version"
    assert factory_code("scipy:test", tmp_path) not in {"", factory_code("nosuch:f", tmp_path)}


@pytest.mark.parametrize(
    "target", ["no_such_package:f", "math:no_such_function", "math", "math:", "collections:OrderedDict.nothing"]
)
def test_missing_targets_are_named(target: str) -> None:
    with pytest.raises(ModelLoadError, match=r"package\.module:function") as error:
        call_factory(Factory(target))
    assert f"factory {target}:" in str(error.value)


def test_failures_are_reported_with_the_call() -> None:
    with pytest.raises(ModelLoadError, match=r"math:sqrt\(x=-1\) failed: TypeError"):
        call_factory(Factory("math:sqrt", {"x": -1}))
    with pytest.raises(ModelLoadError, match=r"failed: ZeroDivisionError"):
        call_factory(Factory("fractions:Fraction", {"numerator": 3, "denominator": 0}))


def test_a_module_that_fails_to_import_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_nets_of_this_test.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelLoadError, match="No module named 'no_such_library'"):
        call_factory(Factory("broken_nets_of_this_test:small"))


def test_a_module_that_raises_at_import_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raising_nets_of_this_test.py").write_text("raise ValueError('at import')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelLoadError, match="raising_nets_of_this_test"):
        call_factory(Factory("raising_nets_of_this_test:small"))


def test_torchvision_is_importable_beside_any_torch() -> None:
    network = call_factory(Factory("torchvision.models:squeezenet1_1", {"num_classes": 7}))
    assert sum(parameter.numel() for parameter in network.parameters()) > 700_000
