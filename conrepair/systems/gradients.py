"""A loaded model's gradients, as something that's run like the model itself."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from conrepair.data.tensor_spec import numpy_dtype
from conrepair.frameworks.runnable import Array, Runnable

__all__ = ["Gradients", "Threaded", "cotangent"]


# A model that PyTorch compiles and runs with so many threads, while the process keeps its own number.


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


def cotangent(output: str) -> str:
    """What the input is called that an output's cotangent is fed to.

    Args:
        output: Its name.
    """
    return f"{output}.cotangent"


class Gradients(Runnable):
    """Takes what a model takes, and a cotangent for each of its real outputs.

    It gives the vector-Jacobian product of each real input, by that input's name.
    """

    def __init__(self, runnable: Runnable) -> None:
        """Hold a model.

        Args:
            runnable: Whose `products` are asked for.
        """
        self._runnable = runnable
        self._real = {cotangent(spec.name): spec for spec in runnable.outputs if spec.is_float}
        fed = (dataclasses.replace(spec, name=name) for name, spec in self._real.items())
        self.inputs = (*runnable.inputs, *fed)
        self.outputs = tuple(spec for spec in runnable.inputs if spec.is_float)

    def run_on_zeros(self) -> None:
        """Run it, so that it's compiled; sizes that are open are 1."""
        sizes = {spec.name: [size if isinstance(size, int) else 1 for size in spec.shape] for spec in self.inputs}
        self.run({spec.name: np.zeros(sizes[spec.name], numpy_dtype(spec.dtype)) for spec in self.inputs})

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        fed = {spec.name: feeds[spec.name] for spec in self._runnable.inputs}
        return self._runnable.products(fed, {spec.name: feeds[name] for name, spec in self._real.items()})
