"""What is mutated, and which tests have to notice: the one place that says so."""

from __future__ import annotations

__all__ = ["DEVELOPMENT", "FOLDERS", "MODULES", "REPORTING", "WARM"]

DEVELOPMENT, REPORTING = 11, 12
"""Seeds: tests are written for what the first one draws; figures are the other one's."""

MODULES = (
    # What is measured: every verdict compares one of these numbers with a bound.
    "conrepair/ground/metrics/tensors.py",
    "conrepair/ground/metrics/running_error.py",
    "conrepair/ground/metrics/body.py",
    "conrepair/ground/metrics/probabilities.py",
    # What rounding explains.
    "conrepair/verdicts/judging/floor.py",
    "conrepair/verdicts/judging/numbers.py",
    "conrepair/verdicts/judging/recognition.py",
    "conrepair/verdicts/judging/exact.py",
    # What is said of a target's outputs.
    "conrepair/verdicts/evaluate/verdict.py",
    "conrepair/verdicts/evaluate/compare.py",
    "conrepair/verdicts/evaluate/answers.py",
    "conrepair/verdicts/evaluate/pairing.py",
    "conrepair/verdicts/evaluate/whole_numbers.py",
    "conrepair/verdicts/evaluate/run.py",
    # Which piece is said to be at fault, and whether anything is.
    "conrepair/diagnosis/localization/run/measurement.py",
    "conrepair/diagnosis/localization/run/reference.py",
    "conrepair/diagnosis/localization/run/activations.py",
    "conrepair/diagnosis/localization/judge/judgement.py",
    "conrepair/diagnosis/localization/judge/quantization.py",
    "conrepair/diagnosis/localization/judge/doubtful.py",
    "conrepair/diagnosis/localization/judge/agreement.py",
    "conrepair/diagnosis/localization/judge/hidden.py",
    "conrepair/diagnosis/localization/judge/conclusion.py",
    "conrepair/diagnosis/localization/align/outputs.py",
    # What is compared with what: a wrong pair accuses, or excuses, a piece.
    "conrepair/diagnosis/localization/align/alignment.py",
    "conrepair/diagnosis/localization/align/matching.py",
    "conrepair/diagnosis/localization/align/refinement.py",
    "conrepair/diagnosis/localization/align/compensating.py",
    "conrepair/diagnosis/localization/align/settling.py",
    # Which edits are taken, and whether what comes out is delivered.
    "conrepair/diagnosis/localization/run/alone.py",
    "conrepair/diagnosis/localization/numbers/pairing.py",
    "conrepair/diagnosis/localization/numbers/judging.py",
    "conrepair/diagnosis/localization/numbers/few_bits.py",
    "conrepair/diagnosis/localization/numbers/preparing.py",
    "conrepair/diagnosis/repairs/bench.py",
    "conrepair/diagnosis/repairs/search.py",
    "conrepair/diagnosis/repairs/rounds.py",
    "conrepair/diagnosis/repairs/criteria.py",
    "conrepair/diagnosis/repairs/minimize.py",
    "conrepair/diagnosis/repairs/verify.py",
)
"""Files whose lines bear a verdict.

Not among them: `localization/faces`, recipes and words (they name a fault, they don't decide that there is one),
`localization/align/samples.py` and `similarity.py` (they propose pairs that others check),
`localization/run/shelf.py` (where arrays are kept: bounds of memory), `repairs/proposals` and the editors (they
propose edits that are judged), reports, and what runs models.
"""

FOLDERS = (
    "tests/ground/metrics",
    "tests/verdicts/judging",
    "tests/verdicts/evaluate",
    "tests/diagnosis/localization",
    "tests/diagnosis/repairs",
    "tests_real/diagnosis/localization",
    "tests_real/diagnosis/repairs",
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
