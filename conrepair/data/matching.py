"""What is said of data that fit a model's inputs by something else than their names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conrepair.data.binding import Binding, bind_inputs
from conrepair.data.tensor_spec import TensorSpec
from conrepair.runtime.errors import DataError


@dataclass(frozen=True)
class Matching:
    """How a file's arrays were fitted to inputs, in words.

    Attributes:
        guesses: Arrays that feed an input of another name where another array would have fitted, too.
        others: What else a person who made the file for this model should know: other names, axes that were
            moved, arrays that feed nothing.
    """

    guesses: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def matching(
    bindings: Sequence[Binding], samples: Sequence[TensorSpec], inputs: Sequence[TensorSpec], *, named: bool
) -> Matching:
    """Say what was done.

    Args:
        bindings: From `bind_inputs`.
        samples: The data's arrays.
        inputs: Of the model.
        named: Whether the data name their arrays; a lone array has no name.
    """
    known = {spec.name: spec for spec in samples}
    wanted = {spec.name: spec for spec in inputs}
    guesses, others = [], []
    for binding in bindings:
        if named and binding.sample != binding.input:
            words = (
                f"no array of the data is called {binding.input}; that input is fed {known[binding.sample]}, "
                "which fits by its shape"
            )
            rivals = [name for name in known if name not in wanted and name != binding.sample]
            if any(_fits(known[name], wanted[binding.input]) for name in rivals):
                guesses.append(f"{words}, as others do")
            else:
                others.append(words)
        if binding.permutation is not None:
            others.append(
                f"the data's array {known[binding.sample]} is transposed by {list(binding.permutation)} for the "
                f"input {wanted[binding.input]}"
            )
    fed = {(known[binding.sample].shape, known[binding.sample].dtype) for binding in bindings}
    for name in _unused(bindings, samples):
        alike = (known[name].shape, known[name].dtype) in fed
        stack = "; samples of one input stand in one array, one behind the other (numpy.concatenate)" if alike else ""
        others.append(f"the data's array {known[name]} feeds no input{stack}")
    return Matching(tuple(guesses), tuple(others))


def _unused(bindings: Sequence[Binding], samples: Sequence[TensorSpec]) -> Iterator[str]:
    taken = {binding.sample for binding in bindings}
    yield from (spec.name for spec in samples if spec.name not in taken)


def _fits(sample: TensorSpec, spec: TensorSpec) -> bool:
    try:
        return bool(bind_inputs([sample], [spec]))
    except DataError:
        return False
