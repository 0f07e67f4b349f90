"""Sessions of ONNX Runtime that run graphs as they're written."""

from __future__ import annotations

from pathlib import Path

import small_models as small

from conrepair.ground.runtime.onnx_session import open_session


def test_threads_that_wait_take_no_core(tmp_path: Path) -> None:
    options = open_session(small.onnx_convnet(tmp_path / "net.onnx")).get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
