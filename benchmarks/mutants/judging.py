"""What is mutated, and which tests have to notice: the one place that says so."""

from __future__ import annotations

__all__ = ["DEVELOPMENT", "FOLDERS", "MODULES", "REPORTING", "WARM"]

DEVELOPMENT, REPORTING = 11, 12
"""Seeds: tests are written for what the first one draws; figures are the other one's."""

MODULES = (
    # What is measured: every verdict compares one of these numbers with a bound.
    "conrepair/metrics/tensors.py",
    "conrepair/metrics/running_error.py",
    "conrepair/metrics/body.py",
    "conrepair/metrics/probabilities.py",
    # What is said of a target's outputs.
    "conrepair/evaluate/verdict.py",
    "conrepair/evaluate/compare.py",
    "conrepair/evaluate/answers.py",
    "conrepair/evaluate/pairing.py",
    "conrepair/evaluate/whole_numbers.py",
    "conrepair/evaluate/intent.py",
    "conrepair/evaluate/run.py",
    # Which piece is said to be at fault, and whether anything is.
    "conrepair/localize/measurement.py",
    "conrepair/localize/reference.py",
    "conrepair/localize/isolation.py",
    "conrepair/localize/judgement.py",
    "conrepair/localize/quantization.py",
    "conrepair/localize/doubtful.py",
    "conrepair/localize/agreement.py",
    "conrepair/localize/hidden.py",
    "conrepair/localize/coverage.py",
    "conrepair/localize/conclusion.py",
    "conrepair/localize/outputs.py",
    # What is compared with what: a wrong pair accuses, or excuses, a piece.
    "conrepair/localize/alignment.py",
    "conrepair/localize/matching.py",
    "conrepair/localize/equals.py",
    "conrepair/localize/crossing.py",
    "conrepair/localize/proving.py",
    "conrepair/localize/learning.py",
    "conrepair/localize/cuts.py",
    "conrepair/localize/isolated.py",
    "conrepair/localize/settling.py",
    "conrepair/localize/compensating.py",
    # Which edits are taken, and whether what comes out is delivered.
    "conrepair/localize/alone.py",
    "conrepair/repair/bench.py",
    "conrepair/repair/search.py",
    "conrepair/repair/rounds.py",
    "conrepair/repair/criteria.py",
    "conrepair/repair/minimize.py",
    "conrepair/repair/verify.py",
    "conrepair/repair/unseen.py",
)
"""Files whose lines bear a verdict.

Not among them: `localize/diagnosis`, recipes and words (they name a fault, they don't decide that there is one),
`localize/samples.py`, `similarity.py` and `guessing.py` (they propose pairs that others check), `localize/shelf.py`
(where arrays are kept: bounds of memory), `repair/proposals` and the editors (they propose edits that are judged),
reports, and what runs models.
"""

FOLDERS = ("tests/metrics", "tests/evaluate", "tests/localize", "tests/repair")
"""Of the tests: the rooms of these files. Those of commands and pipelines notice more, and take minutes."""

WARM = (
    "hypothesis",
    "keras",
    "numpy",
    "onnx",
    "onnxruntime.quantization",
    "onnxscript",
    "scipy.sparse.csgraph",
    "sympy",
    "tensorflow",
    "tf2onnx",
    "torch.export",
)
"""Libraries that are imported once, before a process is forked for each mutant."""
