"""PyTorch: exported programs (.pt2), TorchScript, and modules built by a factory with a state dict."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from conrepair.formats.models.admission import HOW_TO_TRUST, admitted
from conrepair.formats.models.builders import CheckpointError, network_in
from conrepair.formats.models.detect import container, is_torchscript
from conrepair.formats.models.factories import call_factory
from conrepair.formats.models.model import Description, Model
from conrepair.formats.models.runnable import Array, Runnable, load_error, loading
from conrepair.formats.torch.load.double import arithmetic, products
from conrepair.formats.torch.load.exported import load_exported
from conrepair.formats.torch.load.states import states_of
from conrepair.formats.torch.load.torchscript_inputs import inputs_of_graph
from conrepair.ground.data.symbolic_sizes import Shapes, other_shapes, trial_shapes, with_declared_sizes
from conrepair.ground.data.tensor_spec import SizeRange, TensorSpec, numpy_dtype
from conrepair.ground.runtime.errors import ModelLoadError
from conrepair.ground.runtime.handing_on import Recent
from conrepair.ground.runtime.user_modules import reach_modules

Results = list[tuple[str, torch.Tensor]]

_EMBEDDINGS = {
    torch.ops.aten.embedding.default,
    torch.ops.aten._embedding_bag.default,
    torch.ops.aten._embedding_bag_forward_only.default,
}


def load_module(model: Model) -> torch.nn.Module:
    """Load a model as something to call, in evaluation mode.

    Args:
        model: A PyTorch model.

    Raises:
        ModelLoadError: if the file can't be read, holds only weights, or is a pickle that isn't trusted.
    """
    with admitted(model) as path:
        return _loaded(model, path)


def _loaded(model: Model, path: Path) -> torch.nn.Module:
    """Load a model from where it may be loaded from."""
    if model.factory is not None:
        return _build(model, path)
    if container(path) == ".pt2":
        try:
            return _Inference(load_exported(path, trust=model.trust))
        except Exception as error:
            if "weights_only" in str(error):
                raise _pickle_error(model) from error
            raise load_error(model, "an exported PyTorch program", error) from error
    with loading(model, "TorchScript"):
        if is_torchscript(path):
            return torch.jit.load(path, map_location="cpu").eval()
    return _unpickle(model, path)


def exported_program(module: torch.nn.Module) -> torch.export.ExportedProgram | None:
    """The exported program that `load_module` found in a .pt2 file; None for modules of other kinds."""
    return module.exported if isinstance(module, _Inference) else None


class TorchRunnable(Runnable):
    """A module on the CPU, without gradients.

    Attributes:
        examples: Zeros for every input, of sizes that it takes.
    """

    def __init__(self, model: Model, *, double: bool = False) -> None:
        self.module = load_module(model)
        self._double = double
        if double:
            self.module = self.module.double()
        exported = exported_program(self.module)
        self.states = () if exported is None else states_of(exported)
        self._fresh = {name: buffer.clone() for name, buffer in self._buffers()}
        failures = []
        for inputs in _possible_inputs(model, self.module):
            self.inputs = tuple(
                replace(spec, dtype="float64") if double and spec.is_float else spec for spec in inputs
            )
            try:
                self._probe(with_declared_sizes(self.inputs, model.inputs))
            # The network's own code runs here, which may raise anything.
            except Exception as error:  # noqa: BLE001
                failures.append((self.inputs, error))
            else:
                return
        inputs, failure = failures[0]
        listing = "; ".join(map(str, inputs))
        reason = ["", *str(failure).strip().splitlines()][-1][:400]  # TorchScript's traceback stands in front
        raise ModelLoadError(
            f"{model.path} doesn't run on inputs {listing}: {type(failure).__name__}: {reason}"
            + ("" if double else ". Declare those that it takes (command line: --input).")
        ) from failure

    def _probe(self, inputs: tuple[TensorSpec, ...]) -> None:
        """Run zeros of two sizes: dimensions that follow them are symbolic."""

        def results(shapes: Shapes) -> Results:
            with torch.inference_mode(), arithmetic(double=self._double):
                return flatten(self.module(*_plain(inputs, shapes)))

        shapes, first = _first_that_runs(results, trial_shapes(inputs))
        others, second = shapes, first
        if any(isinstance(size, str) for spec in inputs for size in spec.shape):
            others, second = _first_that_runs(results, [*other_shapes(inputs, shapes), shapes])
        self.examples = _plain(inputs, shapes)
        self.outputs = output_specs(inputs, first, second)
        if isinstance(self.module, torch.jit.ScriptModule):
            # It doesn't say its sizes: one beside which there is no other is the only one.
            self.inputs = tuple(map(_with_only_sizes, self.inputs, shapes, others))

    def _reset(self) -> None:
        for name, buffer in self._buffers():
            buffer.copy_(self._fresh[name])

    def _buffers(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Buffers that hold a state."""
        held = dict(self.module.named_buffers()) if self.states else {}
        yield from ((name, held[f"program.{name}"]) for name in self.states if f"program.{name}" in held)

    def _run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        arguments = [tensor_from_array(feeds[spec.name]) for spec in self.inputs]
        with torch.inference_mode(), arithmetic(double=self._double):
            outputs = flatten(self.module(*arguments))
        return {spec.name: array_from_tensor(tensor) for spec, (_, tensor) in zip(self.outputs, outputs, strict=True)}

    def products(self, feeds: Mapping[str, Array], cotangents: Mapping[str, Array]) -> Mapping[str, Array]:
        """Compute gradients, by autograd."""
        with arithmetic(double=self._double):
            return self._differentiated(self.module, feeds, cotangents)

    def _differentiated(
        self, call: Callable[..., Any], feeds: Mapping[str, Array], cotangents: Mapping[str, Array]
    ) -> Mapping[str, Array]:
        """The products of what computes the outputs."""
        given = [cotangents.get(spec.name) for spec in self.outputs]
        found = products(
            lambda *tensors: [tensor for _, tensor in flatten(call(*tensors))],
            [tensor_from_array(feeds[spec.name]) for spec in self.inputs],
            [None if array is None else tensor_from_array(array) for array in given],
        )
        pairs = zip(self.inputs, found, strict=True)
        return {spec.name: array_from_tensor(tensor) for spec, tensor in pairs if tensor is not None}


_RECENT: Recent[TorchRunnable] = Recent(256 << 20)


class TorchFramework:
    """See `conrepair.formats.models.formats.Format`."""

    def describe(self, model: Model) -> Description:
        """Operators are ATen ones where the file has a graph, leaf modules where a factory builds it."""
        runnable = _recent(model, double=False)
        module = runnable.module
        return Description(
            format=_format(model),
            inputs=_with_table_sizes(runnable),
            outputs=runnable.outputs,
            operators=dict(sorted(_operators(module).items())),
            parameters=sum(parameter.numel() for parameter in module.parameters()),
            weights=weights_of([*module.parameters(), *module.buffers()]),
            states=runnable.states,
            producer=f"torch {torch.__version__}",
        )

    def load(self, model: Model, *, second_opinion: bool = False) -> Runnable:
        """The module; the second opinion computes in float64."""
        return _recent(model, double=second_opinion)


def _recent(model: Model, *, double: bool) -> TorchRunnable:
    """A model, loaded and tried; a small exported program whose buffers stay as they are is held for the next."""
    how = repr((model.bare, double))
    return _RECENT.of(Path(model.path), how, lambda: TorchRunnable(model, double=double), stays=_stays)


def _stays(runnable: TorchRunnable) -> bool:
    return exported_program(runnable.module) is not None and not runnable.states


_WHOLE = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}


def example_inputs(inputs: tuple[TensorSpec, ...]) -> tuple[torch.Tensor, ...]:
    """Zeros (or ones, of whole numbers) for every input, of usual sizes where these are open.

    Args:
        inputs: Of the network.
    """
    return _plain(inputs, next(trial_shapes(inputs)))


def _plain(inputs: tuple[TensorSpec, ...], shapes: Shapes) -> tuple[torch.Tensor, ...]:
    """Zeros; ones where numbers are whole, by which networks divide, and which may be lengths."""
    types = [getattr(torch, spec.dtype) for spec in inputs]
    return tuple(
        torch.full(shape, int(dtype in _WHOLE), dtype=dtype) for dtype, shape in zip(types, shapes, strict=True)
    )


def _first_that_runs(run: Callable[[Shapes], Results], trials: Iterable[Shapes]) -> tuple[Shapes, Results]:
    """The first shapes that a network takes, and what it gives for them; if it takes none, its first error."""
    failures = []
    for shapes in trials:
        try:
            return shapes, run(shapes)
        # The network's own code, which may raise anything: it doesn't take these.
        except Exception as error:  # noqa: BLE001
            failures.append(error)
    raise failures[0]


def _with_only_sizes(spec: TensorSpec, one: tuple[int, ...], two: tuple[int, ...]) -> TensorSpec:
    shape = [a if a == b else size for size, a, b in zip(spec.shape, one, two, strict=True)]
    return replace(spec, shape=(*spec.shape[:1], *shape[1:]))


def flatten(value: Any, name: str = "output") -> Results:
    """Name the tensors of a module's result: by key in mappings, by position in sequences."""
    if isinstance(value, torch.Tensor):
        return [(name, value)]
    if isinstance(value, Mapping):
        return [leaf for key, item in value.items() for leaf in flatten(item, str(key))]
    if isinstance(value, list | tuple):
        names = getattr(value, "_fields", None) or [f"{name}_{index}" for index in range(len(value))]
        return [leaf for key, item in zip(names, value, strict=True) for leaf in flatten(item, key)]
    return []


class _Inference(torch.nn.Module):
    """An exported program's module, which refuses train() and eval() though exporters call them.

    It takes the program's tensors one by one, each under the name of its placeholder, which tells where it stands
    ("batch_mask" for `batch["mask"]`), and gives the program the dictionaries, tuples and constants that it takes.
    """

    def __init__(self, exported: torch.export.ExportedProgram) -> None:
        super().__init__()
        self.exported = exported
        self.program = exported.module()
        self.training = False
        given = [spec.arg for spec in exported.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
        self._leaves = [argument.value if isinstance(argument, ConstantArgument) else ... for argument in given]
        self._spec = exported.call_spec.in_spec
        one_by_one = pytree.tree_structure(((0,) * self._leaves.count(...), {}))
        self.is_flat = self._spec is None or self._spec == one_by_one

    def forward(self, *arguments: torch.Tensor) -> Any:
        if self.is_flat:
            return self.program(*arguments)
        tensors = iter(arguments)
        leaves = [next(tensors) if leaf is ... else leaf for leaf in self._leaves]
        positional, by_name = pytree.tree_unflatten(leaves, self._spec)
        return self.program(*positional, **by_name)

    def train(self, mode: bool = True) -> _Inference:
        return self


def _build(model: Model, path: Path) -> torch.nn.Module:
    if model.factory is None:
        raise ValueError("not a factory's model")
    module = call_factory(model.factory)
    if not isinstance(module, torch.nn.Module):
        raise ModelLoadError(f"{model.factory.target} returned {type(module).__name__}, not a torch.nn.Module.")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        module.load_state_dict(state)
    except Exception as error:
        raise _read_error(model, f"the weights of {model.factory.target}", error) from error
    return module.eval()


def _unpickle(model: Model, path: Path) -> torch.nn.Module:
    if model.trust:
        reach_modules()
    try:
        value = torch.load(path, map_location="cpu", weights_only=not model.trust)
    except Exception as error:
        raise _read_error(model, "a PyTorch file", error) from error
    try:
        network = network_in(value)
    except CheckpointError as error:
        raise ModelLoadError(f"{model.path} can't be loaded as a PyTorch file: {error}.") from error
    if isinstance(network, torch.nn.Module):
        return network.eval()
    raise ModelLoadError(
        f"{model.path} holds only weights, and no network (a state dict, or a checkpoint). From Python, load them "
        "into the network (`network.load_state_dict(torch.load(FILE))`) and give that: `conrepair.compare(network, "
        "...)`. On the command line, give its export (.pt2, TorchScript or ONNX). In a configuration, `factory` "
        "names the function that builds the network, and `weights` this file."
    )


def _read_error(model: Model, what: str, error: Exception) -> ModelLoadError:
    text = str(error)
    if "Unsupported global" in text or "Unsupported class" in text:
        return _pickle_error(model)
    if "weights_only" in text:  # torch goes on with the advice to load it unsafely
        error = ValueError("its content is not what PyTorch writes")
    return load_error(model, what, error)


def _pickle_error(model: Model) -> ModelLoadError:
    return ModelLoadError(
        f"{model.path} holds pickled objects: loading it would run code. Save it with torch.export.save (.pt2) or "
        f"as a state dict with a factory. {HOW_TO_TRUST}."
    )


def _possible_inputs(model: Model, module: torch.nn.Module) -> list[tuple[TensorSpec, ...]]:
    """What a network may take: what its file says, or is declared, else what its first layers tell."""
    if isinstance(module, _Inference):
        return [exported_inputs(module.exported)]
    names = _argument_names(module)
    if not model.inputs and isinstance(module, torch.jit.ScriptModule):
        found = list(inputs_of_graph(module, names))
        if found:
            return found
    if not model.inputs:
        raise ModelLoadError(
            f"{model.path} doesn't record its inputs ({', '.join(names)}). Declare them, each with its shape, e.g. "
            f'"inputs": [{{"name": "{names[0]}", "shape": ["batch", ...]}}] (command line: --input '
            f"{names[0]}=batch,SIZE,...:DTYPE)."
        )
    if len(names) < len(model.inputs):
        raise ModelLoadError(f"{model.path}: {len(model.inputs)} inputs are declared, but the network takes {names}.")
    return [tuple(replace(spec, name=spec.name or name) for spec, name in zip(model.inputs, names, strict=False))]


def exported_inputs(program: torch.export.ExportedProgram) -> tuple[TensorSpec, ...]:
    """What an exported program takes.

    Args:
        program: As it was loaded.
    """
    names = program.graph_signature.user_inputs
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    ranges = {str(symbol): limits for symbol, limits in program.range_constraints.items()}
    return tuple(
        TensorSpec(
            str(name),
            tuple(size if isinstance(size, int) else str(size) for size in values[name].shape),
            dtype_name(values[name].dtype),
            ranges=tuple(_size_ranges(values[name].shape, ranges)),
        )
        for name in names
        if isinstance(values.get(name), torch.Tensor)
    )


def _size_ranges(shape: torch.Size, ranges: Mapping[str, Any]) -> Iterator[SizeRange]:
    """The ranges of the symbols that sizes are computed from, where the program states them."""
    for size in shape:
        for symbol in () if isinstance(size, int) else size.node.expr.free_symbols:
            limits = ranges.get(str(symbol))
            if limits is not None:
                high = int(limits.upper) if limits.upper.is_Integer else None  # else int_oo
                yield SizeRange(str(symbol), max(1, int(limits.lower)), high)


def _argument_names(module: torch.nn.Module) -> list[str]:
    if isinstance(module, torch.jit.ScriptModule):
        return [value.debugName().split(".")[0] for value in list(module.graph.inputs())[1:]]
    parameters = inspect.signature(module.forward).parameters.values()
    return [
        parameter.name
        for parameter in parameters
        if parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    ]


def output_specs(inputs: tuple[TensorSpec, ...], first: Results, second: Results) -> tuple[TensorSpec, ...]:
    """Outputs by what was given for two sizes of the inputs."""
    batch = next((size for spec in inputs for size in spec.shape[:1] if isinstance(size, str)), "?")
    return tuple(
        TensorSpec(
            name,
            tuple(
                a if isinstance(a, int) and a == b else batch if not axis else "?"
                for axis, (a, b) in enumerate(zip(one.shape, two.shape, strict=True))
            ),
            dtype_name(one.dtype),
        )
        for (name, one), (_, two) in zip(first, second, strict=True)
    )


class _TableSizes(TorchDispatchMode):
    """Notes the smallest table that each of some tensors is looked up in, while a module runs."""

    def __init__(self, tensors: tuple[torch.Tensor, ...]) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self._positions = {_storage(tensor): position for position, tensor in enumerate(tensors)}
        self._casts: list[torch.Tensor] = []  # kept, so that no other tensor gets their storage

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for axis, indices in lookups(function, args):
            position = self._positions.get(_storage(indices))
            if position is not None:
                size = int(args[0].shape[axis])
                self.sizes[position] = min(size, self.sizes.get(position, size))
        if function is torch.ops.aten._to_copy.default and _storage(args[0]) in self._positions:
            self._positions[_storage(result)] = self._positions[_storage(args[0])]
            self._casts.append(result)
        return result


def lookups(function: Any, args: Any) -> Iterator[tuple[int, torch.Tensor]]:
    """The axes of an operator's first operand that are indexed, each with the indices."""
    if function in _EMBEDDINGS:
        yield 0, args[1]
    elif function is torch.ops.aten.index_select.default:
        yield args[1], args[2]
    elif function is torch.ops.aten.index.Tensor:
        yield from ((axis, item) for axis, item in enumerate(args[1]) if item is not None)


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _with_table_sizes(runnable: TorchRunnable) -> tuple[TensorSpec, ...]:
    inputs, tensors = runnable.inputs, runnable.examples
    if all(spec.is_float for spec in inputs):
        return inputs
    # Inference mode would show whole operators (`to`) instead of what they do (`_to_copy`).
    with torch.no_grad(), _TableSizes(tensors) as noted:
        runnable.module(*tensors)
    return tuple(replace(spec, high=spec.high or noted.sizes.get(place)) for place, spec in enumerate(inputs))


def _operators(module: torch.nn.Module) -> Counter[str]:
    if isinstance(module, torch.jit.ScriptModule):
        return Counter(
            node.kind().removeprefix("aten::")
            for node in module.inlined_graph.nodes()
            if node.kind().startswith("aten::")
        )
    if isinstance(module, _Inference):
        return aten_calls(module.program.graph)
    return Counter(type(part).__name__ for part in module.modules() if not any(part.children()))


def aten_calls(graph: torch.fx.Graph) -> Counter[str]:
    """How often a graph calls each of ATen's operators, by its name without the overload."""
    names = [str(node.target) for node in graph.nodes if node.op == "call_function"]
    return Counter(name.split(".")[1] for name in names if name.startswith("aten."))


def weights_of(tensors: Iterable[torch.Tensor]) -> dict[str, int]:
    """How many numbers there are of each type."""
    weights: Counter[str] = Counter()
    for tensor in tensors:
        weights[dtype_name(tensor.dtype)] += tensor.numel()
    return dict(weights)


def _format(model: Model) -> str:
    if model.factory is not None:
        return f"PyTorch module of {model.factory.target}"
    if model.path.endswith(".pt2"):
        return "exported PyTorch program"
    return "TorchScript" if is_torchscript(Path(model.path)) else "pickled PyTorch module"


def tensor_from_array(array: Array) -> torch.Tensor:
    """Share an array's memory; PyTorch doesn't know the bfloat16 that numpy has from ml_dtypes."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def array_from_tensor(tensor: torch.Tensor) -> Array:
    """Share a tensor's memory."""
    half = tensor.dtype == torch.bfloat16
    array: Array = tensor.view(torch.int16).numpy().view(numpy_dtype("bfloat16")) if half else tensor.numpy()
    return array


def dtype_name(dtype: torch.dtype) -> str:
    """Name an element type as numpy does."""
    return str(dtype).removeprefix("torch.")


FRAMEWORK = TorchFramework()
