"""TensorFlow: SavedModel folders and frozen graphs (.pb) of TensorFlow 1."""

from __future__ import annotations

import contextlib
import re
import weakref
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from conrepair.formats.models.admission import admitted
from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.runnable import Array, Runnable, loading
from conrepair.formats.tensorflow.load.states import states_of
from conrepair.formats.tensorflow.load.tables import table_sizes
from conrepair.ground.data.tensor_spec import TensorSpec, shape_of
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.words import natural_order

_PREFERRED_SIGNATURES = ("serving_default", "serve")
_MULTIPLIES = re.compile(r"(Batch)?MatMul(V2|V3)?|(DepthwiseC|C)onv\dd?\w*|Einsum", re.IGNORECASE)
_NOT_OUTPUTS = {"Assert", "Const", "NoOp", "Placeholder"}


def load_function(model: Model) -> tuple[Any, Any]:
    """Load the function to call.

    Returns:
        A concrete function that takes its inputs by name and returns a dict of outputs, and the object that
        keeps its variables alive.

    Raises:
        ModelLoadError: if the file can't be read or has nothing to call.
    """
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(admitted(model))
        if not path.is_dir():
            return _load_frozen(model, path), None
        with loading(model, "a SavedModel"):
            loaded = tf.saved_model.load(str(path))
        name = preferred_signature(list(loaded.signatures))
        if name is None:
            raise ModelLoadError(
                f"{model.path} has no signature, so nothing says how to call it. Save it with "
                "tf.saved_model.save(..., signatures=...) or keras Model.export()."
            )
        weakref.finalize(loaded, stack.pop_all().close)  # a call may read its vocabularies
        return loaded.signatures[name], loaded


def preferred_signature(names: Sequence[str]) -> str | None:
    """The signature that is called, of those that a SavedModel has; None where none is for callers."""
    own = [name for name in names if not name.startswith("__")]
    return next((name for name in _PREFERRED_SIGNATURES if name in own), own[0] if own else None)


def callable_by_position(function: Any) -> Any:
    """A `tf.function` with a signature whose inputs have the names that `function` takes them by.

    The converters name inputs after arguments, and take no function of a frozen graph as it is.

    Args:
        function: From `load_function`.
    """
    specs = function.structured_input_signature[1]

    def call(*arguments: Any) -> Any:
        return function(**dict(zip(specs, arguments, strict=True)))

    signature = [tf.TensorSpec(spec.shape, spec.dtype, name=name) for name, spec in specs.items()]
    # Autograph has nothing to do here, and would leave a file in the temporary folder.
    return tf.function(call, input_signature=signature, autograph=False)


class TensorFlowRunnable(Runnable):
    """A concrete function; inputs and outputs in the order of their names.

    A signature has no order of its own: it's a mapping, which TensorFlow reads in another order in each process.
    """

    ordered = False

    def __init__(self, model: Model) -> None:
        self.function, self.owner = load_function(model)
        inputs, outputs = self.function.structured_input_signature[1], self.function.structured_outputs
        self.inputs = tuple(_spec(name, inputs[name]) for name in natural_order(inputs))
        self.outputs = tuple(_spec(name, outputs[name]) for name in natural_order(outputs))

        self._states = [(variable, variable.numpy()) for variable in states_of(self.function)]
        self.states = tuple(variable.name.removesuffix(":0") for variable, _ in self._states)

    def indexing(self) -> tuple[TensorSpec, ...]:
        """The inputs with the sizes of the tables that they index."""
        if not any(np.dtype(spec.dtype).kind in "iu" for spec in self.inputs if spec.dtype != "string"):
            return self.inputs
        sizes = table_sizes(self.function)
        return tuple(spec if spec.is_float else replace(spec, high=sizes.get(spec.name)) for spec in self.inputs)

    def _reset(self) -> None:
        for variable, value in self._states:
            variable.assign(value)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        result = self.function(**{name: tf.constant(array) for name, array in feeds.items()})
        return {name: tensor.numpy() for name, tensor in result.items()}

    def products(self, feeds: Mapping[str, Array], cotangents: Mapping[str, Array]) -> Mapping[str, Array]:
        """Compute gradients, by a gradient tape."""
        return self.differentiated(products, feeds, cotangents)

    def differentiated(
        self, how: Callable[..., Any], feeds: Mapping[str, Array], cotangents: Mapping[str, Array]
    ) -> Mapping[str, Array]:
        """Gradients times cotangents, as plain or compiled code computes them.

        Args:
            how: `products`, as it is or compiled.
            feeds: That fit the inputs.
            cotangents: Of the real outputs.
        """
        fed, given = ({name: tf.constant(array) for name, array in arrays.items()} for arrays in (feeds, cotangents))
        return {name: tensor.numpy() for name, tensor in how(self.function, fed, given).items()}


class TensorFlowFramework:
    """See `conrepair.formats.models.formats.Format`."""

    def describe(self, model: Model) -> Description:
        """Operators are those of the graph and the functions it calls."""
        runnable = TensorFlowRunnable(model)
        graph = runnable.function.graph.as_graph_def()
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        weights: Counter[str] = Counter()
        for variable in runnable.function.graph.variables:
            weights[variable.dtype.name] += int(np.prod(variable.shape))
        if not weights:
            for node in nodes:
                if node.op == "Const" and node.attr["value"].tensor.tensor_shape.dim:
                    sizes = [dim.size for dim in node.attr["value"].tensor.tensor_shape.dim]
                    weights[tf.as_dtype(node.attr["dtype"].type).name] += int(np.prod(sizes))
        return Description.counted(
            (node.op for node in nodes),
            weights,
            format="SavedModel" if Path(model.path).is_dir() else "frozen graph",
            inputs=runnable.indexing(),
            outputs=runnable.outputs,
            computes=narrower_type(nodes) if set(weights) == {"float32"} else "",
            states=runnable.states,
            producer=f"tensorflow {tf.__version__}",
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """The function.

        Raises:
            ModelLoadError: for a second opinion: TensorFlow has one arithmetic for a saved graph.
        """
        if second_opinion:
            raise ModelLoadError("TensorFlow offers no second arithmetic for a saved graph.")
        return TensorFlowRunnable(model)


def narrower_type(nodes: Sequence[Any]) -> str:
    """The type that most products with weights are computed in, if it's narrower than float32; else "".

    Args:
        nodes: Of a graph and its functions.
    """
    types = Counter(tf.as_dtype(node.attr["T"].type).name for node in nodes if _MULTIPLIES.fullmatch(node.op))
    most = types.most_common(1)[0][0] if types else ""
    return most if most in {"float16", "bfloat16"} else ""


def _load_frozen(model: Model, path: Path) -> Any:
    graph = tf.compat.v1.GraphDef()
    with loading(model, "a frozen TensorFlow graph"):
        graph.ParseFromString(path.read_bytes())
        placeholders = [node.name for node in graph.node if node.op == "Placeholder"]
        consumed = {name.split(":")[0].lstrip("^") for node in graph.node for name in node.input}
        results = [node.name for node in graph.node if node.name not in consumed and node.op not in _NOT_OUTPUTS]
        if not placeholders or not results:
            raise ValueError("the graph has no placeholder or no result")
        wrapped = tf.compat.v1.wrap_function(lambda: tf.compat.v1.import_graph_def(graph, name=""), signature=[])
        tensor = wrapped.graph.as_graph_element
        function = wrapped.prune(
            [tensor(f"{name}:0") for name in placeholders], {name: tensor(f"{name}:0") for name in results}
        )
    return _Named(function, placeholders)


class _Named:
    """A pruned function of a frozen graph, with the signature that SavedModel functions have."""

    def __init__(self, function: Any, names: list[str]) -> None:
        self._function = function
        self._names = names
        self.graph = function.graph
        specs = map(tf.TensorSpec.from_tensor, function.inputs)
        self.structured_input_signature = ((), dict(zip(names, specs, strict=True)))
        self.structured_outputs = function.structured_outputs

    def __call__(self, **feeds: Any) -> Any:
        return self._function(*(feeds[name] for name in self._names))


def _spec(name: str, spec: Any) -> TensorSpec:
    if spec.shape.rank is None:
        raise ModelLoadError(f"tensor {name} has no known rank; export the model with defined shapes.")
    return TensorSpec(name, shape_of(spec.shape), "string" if spec.dtype == tf.string else spec.dtype.name)


def products(
    call: Callable[..., Mapping[str, Any]], arguments: Mapping[str, Any], cotangents: Mapping[str, Any]
) -> dict[str, Any]:
    """Vector-Jacobian products by TensorFlow's tape.

    Args:
        call: Takes inputs by name, and gives outputs by name.
        arguments: What it's called with.
        cotangents: Of the real outputs.

    Returns:
        By real argument, zeros where nothing depends on it.
    """
    real = {name: tensor for name, tensor in arguments.items() if tensor.dtype.is_floating}
    with tf.GradientTape() as tape:
        tape.watch(real)
        outputs = call(**arguments)
        asked = {name: outputs[name] for name in cotangents}
    found = tape.gradient(asked, real, dict(cotangents), unconnected_gradients=tf.UnconnectedGradients.ZERO)
    return {name: tf.convert_to_tensor(tensor) for name, tensor in found.items()}


FRAMEWORK = TensorFlowFramework()
