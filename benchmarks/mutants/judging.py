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
    # What rounding explains.
    "conrepair/judging/floor.py",
    "conrepair/judging/numbers.py",
    "conrepair/judging/recognition.py",
    "conrepair/judging/exact.py",
    # What is said of a target's outputs.
    "conrepair/evaluate/verdict.py",
    "conrepair/evaluate/compare.py",
    "conrepair/evaluate/answers.py",
    "conrepair/evaluate/pairing.py",
    "conrepair/evaluate/whole_numbers.py",
    "conrepair/evaluate/run.py",
    "conrepair/evaluate/run.py",
    # Which piece is said to be at fault, and whether anything is.
    "conrepair/localization/measurement.py",
    "conrepair/localization/reference.py",
    "conrepair/localization/isolation.py",
    "conrepair/localization/judgement.py",
    "conrepair/localization/quantization.py",
    "conrepair/localization/doubtful.py",
    "conrepair/localization/agreement.py",
    "conrepair/localization/hidden.py",
    "conrepair/localization/conclusion.py",
    "conrepair/localization/outputs.py",
    # What is compared with what: a wrong pair accuses, or excuses, a piece.
    "conrepair/localization/alignment.py",
    "conrepair/localization/matching.py",
    "conrepair/localization/refinement.py",
    "conrepair/localization/matching.py",
    "conrepair/localization/compensating.py",
    "conrepair/localization/settling.py",
    "conrepair/localization/compensating.py",
    # Which edits are taken, and whether what comes out is delivered.
    "conrepair/localization/alone.py",
    "conrepair/localization/numbers/pairing.py",
    "conrepair/localization/numbers/judging.py",
    "conrepair/localization/numbers/few_bits.py",
    "conrepair/localization/numbers/preparing.py",
    "conrepair/repairs/bench.py",
    "conrepair/repairs/search.py",
    "conrepair/repairs/rounds.py",
    "conrepair/repairs/criteria.py",
    "conrepair/repairs/minimize.py",
    "conrepair/repairs/verify.py",
)
"""Files whose lines bear a verdict.

Not among them: `localization/diagnosis`, recipes and words (they name a fault, they don't decide that there is one),
`localization/samples.py` and `similarity.py` (they propose pairs that others check),
`localization/shelf.py` (where arrays are kept: bounds of memory), `repairs/proposals` and the editors (they propose
edits that are judged), reports, and what runs models.
"""

FOLDERS = (
    "tests/metrics",
    "tests/judging",
    "tests/evaluate",
    "tests/localization",
    "tests/repairs",
    "tests_real/localization",
    "tests_real/repairs",
)
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
