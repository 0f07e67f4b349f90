"""Names that modules import when they're asked for."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import conrepair
import conrepair.plugins
from conrepair.ground.runtime.stub import places_in


@pytest.mark.parametrize("module", [conrepair, conrepair.plugins])
def test_every_name_of_a_stub_is_there_and_comes_from_its_module(module: object) -> None:
    places = places_in(str(module.__file__))  # type: ignore[attr-defined]
    assert len(places) > 15
    for name, place in places.items():
        assert getattr(module, name) is getattr(importlib.import_module(place), name)
        assert name in dir(module) or not place.startswith("conrepair.")
    with pytest.raises(AttributeError, match="no attribute 'nobody'"):
        module.nobody  # type: ignore[attr-defined]  # noqa: B018


def test_a_stub_may_say_more_than_imports(tmp_path: Path) -> None:
    (tmp_path / "some.pyi").write_text('"""Words."""\nimport os\nfrom a.b import C as C, D as D\n\nversion: str\n')
    assert places_in(str(tmp_path / "some.py")) == {"C": "a.b", "D": "a.b"}
