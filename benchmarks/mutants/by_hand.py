"""Mutants that somebody thought of: what mustn't be lost, though no operator of cosmic-ray takes it away."""

from __future__ import annotations

from pathlib import Path

from benchmarks.mutants.mutant import Mutant, mutant_of

__all__ = ["by_hand"]

_CHANGES = (
    ("conrepair/verdicts/judging/numbers.py", "LARGEST_NOISE = 0.1 ", "LARGEST_NOISE = 10.0 "),
    (
        "conrepair/verdicts/judging/floor.py",
        "return self._of(found, By.ESTIMATE, checked=True)",
        "return self._of(own, By.ESTIMATE, checked=True)",
    ),
    (
        "conrepair/verdicts/evaluate/verdict.py",
        "return self.severity <= Verdict.QUANTIZED.severity",
        "return self.severity <= Verdict.UNDECIDED.severity",
    ),
    ("conrepair/verdicts/evaluate/compare.py", "if not left:", "if outputs:"),
    (
        "conrepair/ground/metrics/running_error.py",
        "for start in range(0, one.size, _CHUNK):",
        "for start in range(0, min(one.size, _CHUNK), _CHUNK):",
    ),
    (
        "conrepair/ground/metrics/running_error.py",
        "return max(self.relative_l2, self.hidden)",
        "return self.relative_l2",
    ),
    (
        "conrepair/diagnosis/localization/judge/judgement.py",
        "min(judging.MARGIN_OF_BITS * quantization, judging.MOST_EXPLAINED)",
        "judging.MARGIN_OF_BITS * quantization",
    ),
    ("conrepair/diagnosis/localization/judge/conclusion.py", "if compared.differs:", "if False:"),
    (
        "conrepair/diagnosis/localization/judge/agreement.py",
        "self._measured = self._reference.measured(self._feeds, tried(self.computes_in))",
        "pass",
    ),
    (
        "conrepair/diagnosis/localization/align/alignment.py",
        "kept = settle(nodes, _without_harmless(sides, kept, errors), isolated)",
        "pass",
    ),
    (
        "conrepair/diagnosis/localization/align/alignment.py",
        "names = [name for name in target.names if name in telling and name not in known]",
        "names = [name for name in target.names if name not in known]",
    ),
    (
        "conrepair/diagnosis/localization/align/refinement.py",
        "if ours[pair[0]] == theirs[pair[1]] == 1:",
        "if ours[pair[0]] == 1:",
    ),
    (
        "conrepair/diagnosis/repairs/criteria.py",
        "return no_more and error_of(fewer) <= _NO_FURTHER * error_of(found)",
        "return no_more",
    ),
    (
        "conrepair/diagnosis/repairs/criteria.py",
        "return fewer.result.is_right or not found.result.is_right",
        "return True",
    ),
    (
        "conrepair/diagnosis/repairs/minimize.py",
        "found.one_by_one(found.side_by_side())",
        "found.side_by_side()",
    ),
    (
        "conrepair/diagnosis/repairs/verify.py",
        "return runs and (not is_worse(after, before) if clean else is_better(after, before))",
        "return runs",
    ),
)


def by_hand(root: Path) -> list[Mutant]:
    """Their mutants.

    Args:
        root: Of the repository.

    Raises:
        ValueError: if a file doesn't have the text any more, or has it twice.
    """
    return [_mutant(root, *change) for change in _CHANGES]


def _mutant(root: Path, file: str, before: str, after: str) -> Mutant:
    source = (root / file).read_text(encoding="utf-8")
    if source.count(before) != 1:
        raise ValueError(f"{file} has {source.count(before)} times {before!r}: write its mutant anew")
    return mutant_of(file, "by hand", source, source.replace(before, after))
