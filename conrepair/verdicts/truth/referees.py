"""Who says what a network computes in float64: ONNX's reference, PyTorch, ONNX Runtime.

They share no code for what they compute, so what two of them agree on is the truth
(`conrepair.verdicts.truth.agreement`). They run where they're called: what hangs or crashes is for the caller to
confine.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from conrepair.formats.models.arithmetic import settled
from conrepair.formats.models.model import Model
from conrepair.ground.operators.record import Array
from conrepair.ground.runtime.errors import ConrepairError
from conrepair.ground.runtime.words import shortened
from conrepair.verdicts.truth.corrected import corrections, refusal
from conrepair.verdicts.truth.widening import doubled, types_of, widened_feeds, with_outputs

Answers = dict[str, Array]
_LONGEST = 300
_UNKNOWN = re.compile(
    r"(?:Could not find an implementation for |operation_type='|"
    r"(?:No implementation was found|No registered implementation) for \D*?'?)(?P<operator>\w+)"
)
"""What says that there is no kernel, no converter, no implementation."""


class CannotJudgeError(ConrepairError):
    """A network that a referee can't run; the message says why.

    Attributes:
        operator: Because of which one; empty where that isn't known.
    """

    def __init__(self, referee: str, why: str, operator: str = "") -> None:
        super().__init__(f"{referee} can't compute it in float64: " + (f"{operator}: {why}" if operator else why))
        self.operator = operator


class Referee(ABC):
    """Somebody who computes networks in float64.

    Attributes:
        name: As it's shown.
    """

    name: str

    @abstractmethod
    def computed(self, model: onnx.ModelProto, feeds: Mapping[str, Array], tensors: Sequence[str]) -> Answers:
        """Load a network and run it, as `answers` does: whatever that raises is a refusal."""

    def answers(self, model: onnx.ModelProto, feeds: Mapping[str, Array], tensors: Sequence[str] = ()) -> Answers:
        """What a network gives.

        Args:
            model: As it's deployed, in its own types.
            feeds: In the same.
            tensors: Those on the way that are answered, too.

        Returns:
            All outputs by name, and these tensors; real numbers in float64.

        Raises:
            CannotJudgeError: if it can't be loaded or run; evaluators, sessions and converters raise dozens of types.
        """
        try:
            with np.errstate(all="ignore"):
                found = self.computed(model, feeds, tensors)
        except CannotJudgeError:
            raise
        except Exception as error:
            unknown = _UNKNOWN.search(str(error))
            why = shortened(" ".join(f"{type(error).__name__}: {error}".split()), _LONGEST)
            raise CannotJudgeError(self.name, why, unknown["operator"] if unknown else "") from error
        if words := settled():
            raise CannotJudgeError(self.name, f"it leaves this thread computing otherwise: {words}")
        return found


def reference_of(model: onnx.ModelProto) -> ReferenceEvaluator:
    """ONNX's reference of a network in float64, with our exact functions put in.

    Args:
        model: In its own types.

    Raises:
        CannotJudgeError: where the reference's answer isn't what ONNX says.
        Exception: whatever the reference raises for operators that it doesn't know.
    """
    for node in model.graph.node:
        why = refusal(node)
        if why:
            raise CannotJudgeError(OnnxReference.name, why, str(node.op_type))
    return ReferenceEvaluator(doubled(model), new_ops=corrections())


class OnnxReference(Referee):
    """ONNX's own evaluator in NumPy, functions of which are replaced by those of `conrepair.ground.operators`."""

    name = "ONNX's reference"

    def computed(self, model: onnx.ModelProto, feeds: Mapping[str, Array], tensors: Sequence[str]) -> Answers:
        """See `Referee.computed`."""
        evaluator = reference_of(model)
        names = [*evaluator.output_names, *tensors]
        return dict(zip(names, evaluator.run(names, _by_name(evaluator.input_names, feeds)), strict=True))


class OnnxRuntime(Referee):
    """ONNX Runtime without optimizations; in float64 it has kernels for few operators, else for nearly all."""

    name = "ONNX Runtime"

    def __init__(self, *, wide: bool = True) -> None:
        """Take what it runs.

        Args:
            wide: Whether that's the network in float64; else in its own types.
        """
        self._wide = wide

    def computed(self, model: onnx.ModelProto, feeds: Mapping[str, Array], tensors: Sequence[str]) -> Answers:
        """See `Referee.computed`."""
        from conrepair.ground.runtime.onnx_session import open_session

        asked = with_outputs(doubled(model) if self._wide else model, tensors)
        session = open_session(asked.SerializeToString(), threads=1, quiet=True)
        names = [item.name for item in session.get_outputs()]
        given = _by_name([item.name for item in session.get_inputs()], feeds) if self._wide else dict(feeds)
        return dict(zip(names, session.run(names, given), strict=True))


class PyTorch(Referee):
    """PyTorch, whose every operator computes in float64, on the network as it was converted.

    Weights are widened as they come out of the conversion, which folds what is computed of constants alone in their
    own type: those weights are given as inputs.
    """

    name = "PyTorch"

    def __init__(self, convert: Callable[[onnx.ModelProto], Model]) -> None:
        """Take what converts.

        Args:
            convert: Writes a model as an exported PyTorch program or TorchScript, inputs and outputs in their order.
        """
        self._convert = convert

    def computed(self, model: onnx.ModelProto, feeds: Mapping[str, Array], tensors: Sequence[str]) -> Answers:
        """See `Referee.computed`."""
        asked, weights = _lifted(with_outputs(model, tensors))
        from conrepair.formats.torch.load.framework import TorchRunnable

        program = TorchRunnable(self._convert(asked), double=True)
        given = _by_name([spec.name for spec in program.inputs], {**feeds, **weights})
        return dict(zip([item.name for item in asked.graph.output], program.run(given).values(), strict=True))


def _by_name(names: Sequence[str], feeds: Mapping[str, Array]) -> dict[str, Array]:
    """In float64; by place where inputs have other names."""
    wide = widened_feeds(feeds)
    if set(names) <= set(wide):
        return {name: wide[name] for name in names}
    return dict(zip(names, wide.values(), strict=True))


_MOVING = {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Constant", "ConstantOfShape"}


def _lifted(model: onnx.ModelProto) -> tuple[onnx.ModelProto, Answers]:
    """The same model, in which weights that real numbers are computed of alone are inputs, and these.

    Raises:
        CannotJudgeError: where real numbers are computed of whole numbers alone.
    """
    lifted = onnx.ModelProto()
    lifted.CopyFrom(model)
    weights = {item.name: item for item in model.graph.initializer}
    known, types, fed = set(weights), types_of(model), dict[str, Array]()
    for node in model.graph.node:
        if not node.input or not all(name in known or not name for name in node.input):
            continue
        real = [name for name in node.input if name in weights and weights[name].data_type == onnx.TensorProto.FLOAT]
        if node.op_type in _MOVING or not any(types.get(name) == onnx.TensorProto.FLOAT for name in node.output):
            known.update(node.output)
        elif real:
            fed.update((name, onnx.numpy_helper.to_array(weights[name])) for name in real)
            known.difference_update(real)
        else:
            raise CannotJudgeError(
                PyTorch.name, "of constants alone, folded in float32 as it's converted", node.op_type
            )
    del lifted.graph.initializer[:]
    lifted.graph.initializer.extend(item for name, item in weights.items() if name not in fed)
    given = {item.name for item in lifted.graph.input}
    lifted.graph.input.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, array.shape)
        for name, array in fed.items()
        if name not in given
    )
    return lifted, fed
