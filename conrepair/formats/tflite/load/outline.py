"""TFLite: operators of TensorFlow's (Flex), and those that an application brings itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.outline import Outline, lacking
from conrepair.formats.tflite.load.screening import dtype_of, kind_of, tables_of
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec, shape_of

_MARK, _FLEX = b"TFL3", "Flex"
# Custom operators that every interpreter has (tensorflow/lite/core/kernels/register.cc).
_KNOWN = {"NumericVerify", "Mfcc", "AudioSpectrogram", "TFLite_Detection_PostProcess"}


def outline(model: Model) -> Outline:
    """See `conrepair.formats.models.outline.outline`."""
    from conrepair.formats.tflite.load.framework import count_operators

    content = Path(model.path).read_bytes()
    if content[4:8] != _MARK:
        raise ValueError("it hasn't the mark of a TFLite file")
    file = tables_of(content)
    operators, weights, matrices = count_operators(file)
    graph = file.subgraphs[0]
    inputs, outputs = (tuple(_spec(graph.tensors[index]) for index in end) for end in (graph.inputs, graph.outputs))
    description = Description.counted(
        operators, weights, format="TFLite", inputs=inputs, outputs=outputs, matrices=dict(matrices)
    )
    custom = [name for name in _custom(file) if name not in _KNOWN]
    flex = [name for name in custom if name.startswith(_FLEX)]
    own = [name for name in custom if not name.startswith(_FLEX)]
    needs_delegate = (
        "TensorFlow's own operators {} need the Flex delegate, which the interpreter here hasn't; convert with "
        "TFLite's operators alone (no SELECT_TF_OPS)"
    )
    needs_kernel = "the custom operators {} have kernels in their application only; convert without allow_custom_ops"
    return Outline(description, (*lacking(flex, needs_delegate), *lacking(own, needs_kernel)))


def _custom(file: Any) -> list[str]:
    """Names of the custom operators, one for each time that it's used."""
    calls = [operator for graph in file.subgraphs for operator in graph.operators or []]
    codes = [file.operatorCodes[operator.opcodeIndex] for operator in calls if kind_of(file, operator) == "CUSTOM"]
    return [code.customCode.decode(errors="replace") for code in codes if code.customCode]


def _spec(tensor: Any) -> TensorSpec:
    sizes = next((sizes for sizes in (tensor.shapeSignature, tensor.shape) if sizes is not None and len(sizes)), ())
    grid: list[Any] = [getattr(tensor.quantization, name, None) for name in ("scale", "zeroPoint")]
    scale, zero = grid
    scaled = scale is not None and zero is not None and len(scale) == len(zero) == 1
    return TensorSpec(
        tensor.name.decode(errors="replace"),
        shape_of(sizes),
        dtype_of(tensor.type),
        Quantization(float(scale[0]), int(zero[0])) if scaled else None,
    )
