"""The answers of a run as a table."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from conrepair.application.report.audit_folder import write_record
from conrepair.ground.data.tensor_spec import TensorSpec


def test_the_table_has_a_column_for_each_class_there_is(tmp_path: Path) -> None:
    """And not for each that somebody asked for: that may be any number."""
    run: Any = SimpleNamespace(
        lengths={},
        outputs=(TensorSpec("y", ("n", 3), "float32"),),
        arrays={"y": np.array([[1, 3, 2]], np.float32)},
        quantized=False,
        count=1,
        seconds=np.zeros(1),
    )
    write_record(run, ("a",), 10**12, tmp_path)
    heading, row = (tmp_path / "answers.csv").read_text().splitlines()
    assert heading.endswith("class_1,score_1,class_2,score_2,class_3,score_3")
    assert row.startswith("0,a,0.000000,1,3")
