"""ONNX to Keras by onnx2keras, for audits of that tool; `onnx-keras` is the converter that routes take.

It knows 56 operators, and of each a part of what ONNX says; docs/measured/onnx-to-keras.md tells of real ones.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conrepair.formats.converters.base import Converter, Option
from conrepair.formats.models.model import Model
from conrepair.formats.onnx.passes.wants import Wants
from conrepair.ground.runtime.errors import ConversionError

_FILE = "model.keras"


def _convert(model: Model, folder: Path, options: Mapping[str, Any]) -> str:
    network = make_network(model, options)
    if lambdas := lambda_layers(network):
        names = ", ".join([*lambdas[:3], *(["..."] if lambdas[3:] else [])])
        raise ConversionError(
            f"onnx2keras made {len(lambdas)} Lambda layers ({names}). They hold functions of its own, which a .keras "
            "file can't carry: it would not load again. Use the converter onnx-keras."
        )
    network.save(folder / _FILE)
    return _FILE


def make_network(model: Model, options: Mapping[str, Any]) -> Any:
    """What onnx2keras makes of a model, in memory; it may hold Lambda layers.

    Args:
        model: An ONNX model.
        options: Of the converter, complete.
    """
    import onnx
    from onnx2keras import onnx_to_keras

    graph = _normalised(model, options["opset"]) if options["normalise"] else onnx.load(model.path)
    names, shapes = _inputs(graph, model)
    with _global_settings_kept():
        return onnx_to_keras(
            graph, names, input_shapes=shapes, verbose=False, change_ordering=options["change_ordering"]
        )


def lambda_layers(network: Any) -> list[str]:
    """Names of a Keras model's Lambda layers."""
    import keras

    return [layer.name for layer in network.layers if isinstance(layer, keras.layers.Lambda)]


def _normalised(model: Model, opset: int) -> Any:
    import onnx_ir

    from conrepair.formats.onnx.passes.normalise import normalise
    from conrepair.ground.onnx_graphs.defaults import write_defaults

    graph = normalise(model.path, _wants(opset), model.inputs)
    _rename(graph.graph)
    for node in graph.graph:
        write_defaults(node, opset)  # the tool asks for some of them by name
    return onnx_ir.to_proto(graph)


def _rename(graph: Any) -> None:
    """Take out of the names what TensorFlow refuses in the name of a layer; inputs keep theirs."""
    values = [value for node in graph for value in node.outputs]
    taken = {str(value.name) for value in [*graph.inputs, *graph.initializers.values(), *values]}
    for value in values:
        plain = re.sub(r"[^A-Za-z0-9_.\\/>-]", "_", str(value.name))
        while plain != value.name and plain in taken:
            plain += "_"
        taken.add(plain)
        value.name = plain


def _inputs(graph: Any, model: Model) -> tuple[list[str], list[list[int | None]]]:
    """Names, and shapes without the batch; open sizes are None, where the tool would write 0."""
    from conrepair.formats.onnx.load.framework import OnnxRunnable
    from conrepair.ground.data.symbolic_sizes import with_declared_sizes

    weights = {tensor.name for tensor in graph.graph.initializer}
    specs = {spec.name: spec for spec in with_declared_sizes(OnnxRunnable(model).inputs, model.inputs)}
    names = [value.name for value in graph.graph.input if value.name not in weights]
    return names, [[size if isinstance(size, int) else None for size in specs[name].shape[1:]] for name in names]


@contextlib.contextmanager
def _global_settings_kept() -> Iterator[None]:
    """It changes Keras's image layout, and leaves it so when it fails; it logs every node."""
    import keras

    logger = logging.getLogger("onnx2keras")
    layout, level = keras.config.image_data_format(), logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        keras.config.set_image_data_format(layout)
        logger.setLevel(level)


def _wants(opset: int) -> Wants:
    """What it has no function for is expanded."""
    import onnx
    from onnx2keras.layers import AVAILABLE_CONVERTERS

    schemas = onnx.defs.get_all_schemas_with_history()
    lacking = frozenset(schema.name for schema in schemas if not schema.domain) - set(AVAILABLE_CONVERTERS)
    return Wants(highest=opset, expand=lacking, identities=False, explicit_pads=True, own_outputs=True)


CONVERTER = Converter(
    name="onnx-keras-onnx2keras",
    source="onnx",
    target="keras",
    distributions=("onnx2keras", "keras", "tensorflow", "onnx", "onnx-ir"),
    convert=_convert,
    options={
        "normalise": Option(True, "rewrite the graph into what the tool reads before", alternatives=(True,)),
        "opset": Option(17, "opset to lower the graph to, when it's normalised", alternatives=(17, 13, 11)),
        "change_ordering": Option(False, "channels-last layers, inputs and outputs (experimental in the tool)"),
    },
    automatic=False,
)
