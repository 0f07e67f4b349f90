"""Draw other inputs where those that are usually drawn tell nothing: outputs are mostly NaN or infinite."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from conrepair.config.model import AuditConfig, SyntheticConfig
from conrepair.report.result import AuditResult, Row

__all__ = ["run_on_telling_inputs"]

# For logarithms and roots; for what overflows; for what needs more.
_RANGES = ((0.05, 1.0), (-0.05, 0.05), (1.0, 8.0))


def run_on_telling_inputs(
    config: AuditConfig,
    run: Callable[[AuditConfig, contextlib.ExitStack], AuditResult],
    use: contextlib.ExitStack,
    note: Callable[[str], None],
) -> AuditResult:
    """Run an audit, and again on inputs of other ranges while outputs are no numbers for the most part.

    Args:
        config: Of the audit; one that says which inputs it wants gets these, and no others.
        run: Runs one; what its result needs stays until the stack is left.
        use: Keeps what the result needs.
        note: Told which inputs are tried.

    Returns:
        The first result that tells something; else that of the inputs that were asked for.
    """
    with contextlib.ExitStack() as first:
        result = run(config, first)
        for low, high in _RANGES if _draws_as_usual(config) and tells_nothing(result) else ():
            note(f"outputs are NaN or infinite for the most part; inputs from {low:g} to {high:g} are tried")
            with contextlib.ExitStack() as other:
                again = run(_with_range(config, low, high), other)
                if not tells_nothing(again):
                    use.enter_context(other.pop_all())
                    return again
        use.enter_context(first.pop_all())
        return result


def _draws_as_usual(config: AuditConfig) -> bool:
    drawn, usual = None if config.dataset is None else config.dataset.synthetic, SyntheticConfig()
    return drawn is not None and (drawn.low, drawn.high) == (usual.low, usual.high)


def tells_nothing(result: AuditResult) -> bool:
    """Whether targets were compared, and hardly anything that they gave is a number."""
    compared = [row for row in result.rows if row.kind != "reference" and row.comparison is not None]
    return bool(compared) and not any(map(_tells, compared))


def _tells(row: Row) -> bool:
    outputs = () if row.comparison is None else row.comparison.outputs
    return not outputs or any(
        item.error.mismatched or 2 * (item.error.nan_reference + item.error.inf_reference) <= item.error.count
        for item in outputs
    )


def _with_range(config: AuditConfig, low: float, high: float) -> AuditConfig:
    if config.dataset is None or config.dataset.synthetic is None:
        raise ValueError("nothing is drawn")
    other = config.dataset.synthetic.model_copy(update={"low": low, "high": high})
    return config.model_copy(update={"dataset": config.dataset.model_copy(update={"synthetic": other})})
