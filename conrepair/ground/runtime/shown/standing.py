"""How far a command has come: its stages, and the machines elsewhere that do their jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_NAMED = 8  # machines that fit a line


@dataclass(frozen=True)
class StageStanding:
    """A stage that has begun.

    Attributes:
        name: Of it.
        done: Steps that are done.
        total: Steps in all.
        seconds: Since it began.
        left: Seconds that what's left takes if it goes on so; None where nobody can tell yet.
    """

    name: str
    done: int
    total: int
    seconds: float
    left: float | None


@dataclass(frozen=True)
class Machine:
    """One that does jobs.

    Attributes:
        name: Of it.
        jobs: How many it did, by their kind.
        at_work: How many it has begun; as of a moment ago.
    """

    name: str
    jobs: Mapping[str, int]
    at_work: int = 0

    @property
    def done(self) -> int:
        """The number of jobs that are done."""
        return sum(self.jobs.values())


@dataclass(frozen=True)
class Elsewhere:
    """What other machines have done.

    Attributes:
        machines: By name, those that are gone, too.
        gone: How many aren't there any more.
        again: How many jobs were given to another one, or anew.
        moved: Bytes by where.
        page: Address of a page that has more; "" for none.
    """

    machines: tuple[Machine, ...]
    gone: int
    again: int
    moved: Mapping[str, int]
    page: str = ""

    @property
    def words(self) -> str:
        """It in a line."""
        named = ", ".join(f"{item.name} {item.done:,}" for item in self.machines[:_NAMED])
        if len(self.machines) > _NAMED:
            named = f"{len(self.machines):,} workers {sum(item.done for item in self.machines):,}"
        parts = [f"jobs: {named or 'no worker'}, {sum(item.at_work for item in self.machines):,} begun"]
        parts += [f"{self.gone:,} workers gone"] if self.gone else []
        parts += [f"{self.again:,} given again"] if self.again else []
        parts.append(", ".join(f"{name} {size / 2**20:,.1f} MiB" for name, size in self.moved.items()))
        return "; ".join(parts)


@dataclass(frozen=True)
class Standing:
    """How far a command has come.

    Attributes:
        stages: In the order in which they began.
        elsewhere: What other machines have done.
    """

    stages: tuple[StageStanding, ...]
    elsewhere: Elsewhere


_tellers: list[Callable[[], Elsewhere]] = []


@contextlib.contextmanager
def jobs_elsewhere(tell: Callable[[], Elsewhere]) -> Iterator[None]:
    """Let progress say, in the block, what other machines do.

    Args:
        tell: What they have done so far; it must take no time.
    """
    _tellers.append(tell)
    try:
        yield
    finally:
        _tellers.pop()


def elsewhere() -> Elsewhere | None:
    """What other machines have done; None where no jobs go there."""
    return _tellers[-1]() if _tellers else None


def duration(seconds: float) -> str:
    """A time in words, roughly.

    Args:
        seconds: How many.
    """
    for unit, name in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * unit:
            return f"{seconds / unit:.{0 if seconds >= 10 * unit else 1}f} {name}"
    return f"{seconds:.0f} s"
