"""Backends that compile as they load, in confined workers that have their environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_models as small

import conrepair

pytestmark = [pytest.mark.slow, pytest.mark.workers, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("backend", "options", "setting"),
    [
        ("inductor", {"inductor_options": {"cpp.simdlen": 1}}, "inductor"),
        ("xla", {"fast_math": True, "disabled_hlo_passes": ["algsimp"]}, "O3, fast math, without algsimp"),
    ],
)
def test_a_model_of_another_format_is_converted_compiled_and_judged(
    backend: Any, options: dict[str, Any], setting: str, tmp_path: Path
) -> None:
    path = small.onnx_convnet(tmp_path / "net.onnx")
    done = conrepair.execute(path, backend=backend, options=options)
    assert done.verdict is not None
    assert done.verdict.is_right
    assert done.row.place is not None
    assert (done.row.place.library, done.row.place.setting) == (backend, setting)
