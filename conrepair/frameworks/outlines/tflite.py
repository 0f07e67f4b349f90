"""TFLite: operators of TensorFlow's (Flex), and those that an application brings itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conrepair.data.tensor_spec import Quantization, TensorSpec
from conrepair.frameworks.model import Description, Model
from conrepair.frameworks.outlines.outline import Outline, counted

__all__ = ["outline"]

_FLEX = "Flex"
# Custom operators that every interpreter has (tensorflow/lite/core/kernels/register.cc).
_KNOWN = {"NumericVerify", "Mfcc", "AudioSpectrogram", "TFLite_Detection_PostProcess"}


def outline(model: Model) -> Outline:
    """See `conrepair.frameworks.outlines.outline.outline`."""
    import tflite

    from conrepair.frameworks.tflite import count_operators

    content = Path(model.path).read_bytes()
    if not tflite.Model.ModelBufferHasIdentifier(content, 0):
        raise ValueError("it hasn't the mark of a TFLite file")
    file = tflite.Model.GetRootAsModel(content, 0)
    for index in range(file.BuffersLength()):
        file.Buffers(index).DataAsNumpy()  # raises where the file ends before
    operators, weights, matrices = count_operators(file)
    graph = file.Subgraphs(0)
    description = Description(
        format="TFLite",
        inputs=tuple(_spec(graph.Tensors(int(index))) for index in graph.InputsAsNumpy()),
        outputs=tuple(_spec(graph.Tensors(int(index))) for index in graph.OutputsAsNumpy()),
        operators=dict(sorted(operators.items())),
        parameters=sum(weights.values()),
        weights=dict(weights),
        matrices=dict(matrices),
    )
    custom = [name for name in _custom(file) if name not in _KNOWN]
    flex = [name for name in custom if name.startswith(_FLEX)]
    own = [name for name in custom if not name.startswith(_FLEX)]
    missing = []
    if flex:
        missing.append(
            f"TensorFlow's own operators {counted(flex)} need the Flex delegate, which the interpreter here hasn't; "
            "convert with TFLite's operators alone (no SELECT_TF_OPS)"
        )
    if own:
        missing.append(
            f"the custom operators {counted(own)} have no kernel here: the application that the file is for brings "
            "them; convert without allow_custom_ops"
        )
    return Outline(description, tuple(missing))


def _custom(file: Any) -> list[str]:
    """Names of the custom operators, one for each time that it's used."""
    import tflite

    names = []
    for index in range(file.SubgraphsLength()):
        graph = file.Subgraphs(index)
        for position in range(graph.OperatorsLength()):
            code = file.OperatorCodes(graph.Operators(position).OpcodeIndex())
            if code.CustomCode() and max(code.BuiltinCode(), code.DeprecatedBuiltinCode()) == (
                tflite.BuiltinOperator.CUSTOM
            ):
                names.append(code.CustomCode().decode(errors="replace"))
    return names


def _spec(tensor: Any) -> TensorSpec:
    import tflite

    kinds = {value: name.lower() for name, value in vars(tflite.TensorType).items() if isinstance(value, int)}
    length = tensor.ShapeSignatureLength()
    sizes = [tensor.ShapeSignature(axis) for axis in range(length)] or [
        tensor.Shape(axis) for axis in range(tensor.ShapeLength())
    ]
    shape: tuple[int | str, ...] = tuple("?" if size < 0 else int(size) for size in sizes)
    found = tensor.Quantization()
    scaled = found is not None and found.ScaleLength() == 1 and found.ZeroPointLength() == 1
    quantization = Quantization(float(found.Scale(0)), int(found.ZeroPoint(0))) if scaled else None
    return TensorSpec(
        tensor.Name().decode(errors="replace"),
        ("batch", *shape[1:]) if shape and shape[0] == "?" else shape,
        kinds[tensor.Type()],
        quantization,
    )
