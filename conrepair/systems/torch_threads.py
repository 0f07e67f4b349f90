"""A model that PyTorch compiles and runs with so many threads, while the process keeps its own number."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping

from conrepair.frameworks.runnable import Array, Runnable

__all__ = ["Threaded"]


class Threaded(Runnable):
    """Opened, and run, with so many threads.

    Args:
        count: Of threads.
        opening: Opens the model.
    """

    def __init__(self, count: int, opening: Callable[[], Runnable]) -> None:
        self._count = count
        with self._threads():
            self._runnable = opening()
        self.inputs, self.outputs = self._runnable.inputs, self._runnable.outputs

    @contextlib.contextmanager
    def _threads(self) -> Iterator[None]:
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self._count)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    def run(self, feeds: Mapping[str, Array], *, fresh: bool = True) -> dict[str, Array]:
        """See `Runnable`; it converts what it's fed itself."""
        with self._threads():
            return self._runnable.run(feeds, fresh=fresh)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        return self.run(feeds)
