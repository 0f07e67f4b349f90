"""The table of benchmarks' jobs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from benchmarks.common.jobs import JOBS

_ROOT = Path(__file__).parents[2]


def test_every_job_that_benchmarks_name_is_in_the_table() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (_ROOT / "benchmarks").rglob("*.py")]
    named = set(re.findall(r'"((?:benchmarks|conrepair\.pipeline)[a-z_.]*:[a-z_]+)"', "\n".join(texts)))
    assert named - JOBS.keys() == {"benchmarks.rightness.families:network"}, "a factory of models is no job"


def test_what_is_in_the_table_is_there() -> None:
    for place in JOBS.values():
        module, _, function = place.partition(":")
        tree = ast.parse((_ROOT / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8"))
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, place
