"""What stands around a loaded model: other names, another number of threads, its gradients."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from conrepair.formats.models.runnable import Array, Runnable
from conrepair.ground.data.tensor_spec import TensorSpec, numpy_dtype
from conrepair.ground.runtime.errors import ConversionError

_INPUTS = "inputs"
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*)")


def named(runnable: Runnable, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> Runnable:
    """Give a model the names of another.

    Args:
        runnable: What converters made; they keep names, or number inputs and outputs in order.
        inputs: Of the ONNX file, in order.
        outputs: The same of outputs.

    Raises:
        ConversionError: if it has more or fewer of them.
    """
    fed, given = _by_name(runnable.inputs, inputs, _INPUTS), _by_name(runnable.outputs, outputs, "outputs")
    return _Named(runnable, fed, given)


def _by_name(specs: Sequence[TensorSpec], wanted: Sequence[TensorSpec], what: str) -> dict[str, TensorSpec]:
    if len({spec.name for spec in specs}) < len(specs):  # TFLite does so with equal computations
        raise ConversionError(f"several {what} of what converters made have one name, so which is which isn't known")
    own, names = {spec.name: spec for spec in specs}, [spec.name for spec in wanted]
    if set(own) == set(names):
        return {name: own[name] for name in names}
    if what == _INPUTS and set(own) < set(names):  # converters leave out what nobody reads
        return own
    if len(specs) != len(names):
        raise ConversionError(f"the model has {len(names)} {what}, and what converters made of it {len(specs)}")
    parts = [match.groups() for spec in specs if (match := _NUMBERED.fullmatch(spec.name))]
    ordered = list(specs)
    if len(parts) == len(specs) and len({(before, behind) for before, _, behind in parts}) == 1:
        ordered = [spec for _, spec in sorted(zip(parts, specs, strict=True), key=lambda pair: int(pair[0][1]))]
    return dict(zip(names, _fitted(ordered, wanted), strict=True))


def _fitted(ordered: list[TensorSpec], wanted: Sequence[TensorSpec]) -> list[TensorSpec]:
    """In an order in which each fits, where there's one: an input that's an output may be numbered as that."""
    left, found = list(ordered), []
    for spec in wanted:
        own = next((item for item in left if _fits(item, spec)), None)
        if own is None:
            return ordered
        left.remove(own)
        found.append(own)
    return found


def _fits(own: TensorSpec, spec: TensorSpec) -> bool:
    sizes = zip(own.shape, spec.shape, strict=False)
    alike = all(one == two or isinstance(one, str) or isinstance(two, str) for one, two in sizes)
    return alike and own.dtype == spec.dtype and len(own.shape) == len(spec.shape)


class _Named(Runnable):
    """A converted model that is fed and answers by the names of the ONNX file that it was made of."""

    def __init__(self, runnable: Runnable, fed: Mapping[str, TensorSpec], given: Mapping[str, TensorSpec]) -> None:
        self._runnable = runnable
        self._fed = {name: spec.name for name, spec in fed.items()}
        self._given = {name: spec.name for name, spec in given.items()}
        self.inputs = tuple(dataclasses.replace(spec, name=name) for name, spec in fed.items())
        self.outputs = tuple(dataclasses.replace(spec, name=name) for name, spec in given.items())

    def run(self, feeds: Mapping[str, Array], *, fresh: bool = True) -> dict[str, Array]:
        fed = {own: feeds[name] for name, own in self._fed.items()}
        made = self._runnable.run(fed, fresh=fresh)
        return {name: made[own] for name, own in self._given.items()}

    def products(self, feeds: Mapping[str, Array], cotangents: Mapping[str, Array]) -> Mapping[str, Array]:
        """As the model, by the other's names."""
        fed = {own: feeds[name] for name, own in self._fed.items()}
        made = self._runnable.products(fed, {self._given[name]: array for name, array in cotangents.items()})
        return {name: made[own] for name, own in self._fed.items() if own in made}

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        raise NotImplementedError("`run` hands on to the model, which checks and converts")


class Threaded(Runnable):
    """A model that PyTorch compiles and runs with so many threads, while the process keeps its own number.

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
