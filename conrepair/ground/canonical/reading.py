"""Read a network into canonical values.

Moves of numbers, layouts and copies are views and no values. Layers with weights have what is behind them by channel
(a batch normalization, factors, a bias) in their numbers: folded, never skipped. Activations and normalizations are
in terms of simpler operators (`conrepair.ground.equations`). What isn't known well enough to say what computes it is
a value that equals no other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from conrepair.ground.canonical.layers import convolved, folded, lies_along, multiplied, scaled, sliced_layer
from conrepair.ground.canonical.numbers import FOLDED, Array, Stored
from conrepair.ground.canonical.operations import Operations
from conrepair.ground.canonical.values import Key, Operand, Words
from conrepair.ground.canonical.views import Shape, View, channels_first, channels_last
from conrepair.ground.equations.expression import Term, computed, names_in, parse
from conrepair.ground.equations.operators import EQUATIONS, TANH_GELU
from conrepair.ground.graph.layer_graph import FEW_BITS, Attribute, LayerGraph, Node, Parameter, Tensor
from conrepair.ground.graph.operators import ELEMENTWISE_BINARY, OF_CHANNELS, OPERATORS, QUANTIZING, is_read

_NOT_EQUAL = QUANTIZING | {"BatchNormalization", "Erf", "Shrink", "Softplus"}
"""Operators whose equation is an approximation, or of other operands; batch normalizations are folded."""
_SIZED = {"Reshape", "Expand", "LSTM", "GRU", "RNN"}
"""Operators of which the shape of the result says what sizes they were given, or that leave inputs out."""
_UNSAID = ("random", "bernoulli", "multinomial", "dropout", "hardmax", "scan", "loop", "while", "map", "call")
"""Parts of names of operators that draw numbers, or of which the opset, or a body, says more than attributes do."""
_BESIDE: Mapping[str, Attribute] = {"precision": 0, "round_mode": "up", "saturate": 1, "stash_type": 1}
"""Attributes that the vocabulary has no names for, as they usually are."""
_HALF = {"float16", "bfloat16"}
_PICTURE = 3  # axes, from which on channels may be the last ones
_MATRIX = 2  # axes
_BINARY = 2  # operands
_OF_SLICES = "axes", "starts", "ends", "steps"


class Reader:
    """Reads networks into one table of values.

    Attributes:
        made: The table.
    """

    def __init__(self) -> None:
        self.made = Operations()

    def input(self, place: int, shape: Shape) -> View:
        """An input of the graph."""
        return self.made.values.value(Key("input", numbers=(place,)), shape)

    def read(
        self, graph: LayerGraph, inputs: Mapping[str, View], assumed: Mapping[str, Sequence[View]]
    ) -> dict[str, View]:
        """The views of a network's tensors.

        Args:
            graph: Of the network.
            inputs: Views of what is fed.
            assumed: Of tensors, what those that read them are given: what the network computes if it's among these,
                else the one that lies as that does, or the first.
        """
        found = {name: self._stored(graph.tensors[name], None, view) for name, view in inputs.items()}
        held = dict(found)
        for node in graph.nodes:
            gridded = any(graph.tensors[name].quantization for name in node.inputs if name)
            for name, view in zip(node.outputs, _Node(self, graph, node, held).views(), strict=True):
                own = self._stored(graph.tensors[name], node, view, gridded=gridded)
                others = assumed.get(name, ())
                near = (other for other in others if other.atoms == own.atoms)
                found[name], held[name] = own, own if own in others or not others else next(near, others[0])
        return found

    def parameter(self, parameter: Parameter) -> int:
        """The number of a parameter, which is read once."""
        return self.made.numbers.number(Stored(parameter.numpy))

    def _stored(self, tensor: Tensor, node: Node | None, view: View, *, gridded: bool = False) -> View:
        """A view of what a tensor holds: numbers of few bits aren't those that are computed.

        Args:
            tensor: The tensor.
            node: That computes it; None for an input.
            view: Of what it computes.
            gridded: Whether it reads integers that stand for real numbers.
        """
        grid, op = tensor.quantization, "" if node is None else node.op
        if tensor.others or (gridded and grid is None and tensor.dtype in FEW_BITS):
            return self.made.unknown(view.shape)  # nothing says for sure what its integers stand for
        words: Words = (("dtype", tensor.dtype), ("grid", None if grid is None else (grid.scale, grid.zero_point)))
        is_counted = not tensor.is_real and op in {*ELEMENTWISE_BINARY, "Cast"}
        if grid is None and tensor.dtype not in _HALF and not is_counted:
            return view
        plain = self.made.values.plain(view)
        return view.of(self.made.values.value(Key("stored", (plain,), words), plain.shape).value)


class _Node:
    """Reads a node.

    Args:
        reader: Whose table the values are in.
        graph: The network.
        node: The node.
        held: Views of the tensors in front of it.
    """

    def __init__(self, reader: Reader, graph: LayerGraph, node: Node, held: Mapping[str, View]) -> None:
        self._reader, self._made, self._graph, self._node = reader, reader.made, graph, node
        self._shapes = [graph.tensors[name].shape for name in node.outputs]
        self._shape: Shape = (self._shapes[0] or ()) if self._shapes else ()
        self._read = [held.get(name) for name in node.inputs]
        self._views = [view for view in self._read if view is not None]
        self._said = {**(OPERATORS[node.op].attributes if node.op in OPERATORS else {}), **node.attributes}

    def views(self) -> Sequence[View]:
        """The views of its outputs."""
        node = self._node
        if not self._is_known():
            return [self._made.unknown(shape or ()) for shape in self._shapes]
        if node.op in OPERATORS and self._views:
            axis = self._said.get("axis")
            if node.op == "Split" and isinstance(axis, int):
                return self._split(self._views[0], axis)
            found = self._one(self._views[0]) if len(node.outputs) == 1 else None
            if found is not None and found.size == math.prod(self._shape):
                return [found.reshaped(self._shape)]
        return self._as_it_is()

    def _is_known(self) -> bool:
        """Whether attributes say all that a node computes, and all that it reads is known."""
        node = self._node
        own = node.own and node.op != "If" and not any(word in node.native.lower() for word in _UNSAID)
        named = node.op in OPERATORS or own
        sizes = all(shape is not None and 0 not in shape for shape in self._shapes)
        # What follows from sizes and is no parameter isn't said.
        left = node.inputs.count("") - len(node.parameters)
        learns = bool(self._said.get("training_mode"))  # with a momentum that nobody carries
        read = all(view is not None for name, view in zip(node.inputs, self._read, strict=True) if name)
        return bool(named) and sizes and read and not learns and (left <= 0 or node.op in _SIZED)

    def _is_real(self) -> bool:
        names = (*self._node.outputs, *filter(None, self._node.inputs))
        return all(self._graph.tensors[name].is_real for name in names)

    def _one(self, x: View) -> View | None:
        """The view of its output; None where there's no better form than the node's own."""
        node, made, said = self._node, self._made, self._said
        if len(self._views) > 1 and node.op not in {*ELEMENTWISE_BINARY, "Concat", "Reshape"}:
            return None  # what's usually a constant is computed here
        axis, axes, pads, perm = (said.get(name) for name in ("axis", "axes", "pads", "perm"))
        match node.op:
            case "Identity" | "Reshape":
                return x if x.size == math.prod(self._shape) else None
            case "Cast" if len({self._graph.tensors[name].dtype for name in (node.inputs[0], node.outputs[0])}) == 1:
                return x
            case "Transpose":
                return made.transposed(x, _whole_numbers(perm) or range(len(x.shape))[::-1])
            case "ReduceMean" | "ReduceSum" | "ReduceMax" | "ReduceMin":
                return made.reduced(node.op, x, _whole_numbers(axes) or range(len(x.shape)))
            case "Softmax" if isinstance(axis, int) and self._is_real():
                return _view(made.softmax(x, axis))
            case "Pad" if isinstance(pads, tuple):
                words = ("mode", said["mode"]), ("value", said["value"])
                return made.padded(x, _whole_numbers(pads), words, self._shape)
            case "Concat" if isinstance(axis, int) and not node.parameters:
                return made.joined(self._views, axis % len(self._shape), self._shape)
            case "Slice":
                return self._slice(x)
            case "MatMul":
                return self._matrix(x)
            case "Conv" | "ConvTranspose":
                return self._convolution(x)
            case "BatchNormalization":
                return self._batch_normalization(x)
        if node.is_copy:
            return x
        operands = OPERATORS[node.op].operands
        if not self._is_real() or operands > _BINARY:
            return None
        if node.op == "GroupNormalization":
            return self._in_groups(x)
        if node.op in EQUATIONS and node.op not in _NOT_EQUAL:
            return self._by_equation(x)
        if node.parameters.keys() - {"operand"}:
            return None
        return _view(self._elementwise(node.op, self._operands(), self._words(), self._shape)) if operands else None

    def _words(self, **other: Hashable) -> Words:
        """What a node's attributes say, those that count."""
        node = self._node
        said = {**self._said, **({} if node.op in OPERATORS else {"native": node.native, **node.own})}
        unread = {name for name in said if name == "constant_first" or not is_read(node.op, name, said)}
        found: dict[str, Hashable] = {
            name: item for name, item in said.items() if item is not None and name not in unread
        }
        found |= {name: item for name, item in node.own.items() if _BESIDE.get(name, item) != item}
        return tuple(sorted({**found, **other}.items()))

    def _as_it_is(self) -> Sequence[View]:
        """Its outputs by the node's own words; in one layout where channels are told by the node."""
        node, words, rank = self._node, self._words(), len(self._shape)
        last, views = self._is_last(rank), list(self._views)
        if last:
            scales = node.attributes.get("scales")
            if isinstance(scales, tuple):
                words = self._words(scales=tuple(scales[axis] for axis in channels_first(rank)))
            views = [self._first(view) for view in views]
        given = sorted(node.parameters.items())
        names = ("roles", tuple(role for role, _ in given)), ("left out", tuple(name == "" for name in node.inputs))
        places = ("constant first", bool(node.attributes.get("constant_first")))
        parameters, found = tuple(self._reader.parameter(item) for _, item in given), []
        for place, shape in enumerate(self._shapes):
            inner = tuple((shape or ())[axis] for axis in channels_first(rank)) if last else shape or ()
            told = ("output", place), *names, places, *words
            key = Key(f"{node.op} as it is", tuple(views), told, parameters=parameters)
            found.append(self._as_laid_out(self._made.values.value(key, inner)))
        return found

    def _is_last(self, rank: int) -> bool:
        return self._node.channels_last and self._node.op in OF_CHANNELS and rank >= _PICTURE

    def _first(self, view: View) -> View:
        rank = len(view.shape)
        return self._made.transposed(view, channels_first(rank)) if self._is_last(rank) else view

    def _split(self, x: View, axis: int) -> list[View]:
        start, found = 0, list[View]()
        for shape in self._shapes:
            size = (shape or ())[axis]
            found.append(self._sliced(x, axis % len(x.shape), start, start + size))
            start += size
        return found

    def _slice(self, x: View) -> View | None:
        """Slices along one axis after the other."""
        axes, starts, ends, steps = (_whole_numbers(self._said.get(name)) for name in _OF_SLICES)
        if not axes or set(steps) - {1}:
            return None
        for axis, start, end in zip(axes, starts, ends, strict=True):
            place = axis % len(x.shape)
            begin, stop, _ = slice(start, end).indices(x.shape[place])
            if stop <= begin:
                return None
            x = self._sliced(x, place, begin, stop)
        return x

    def _sliced(self, x: View, axis: int, start: int, end: int) -> View:
        layer = sliced_layer(self._made, x, axis, start, end)
        return self._made.sliced(x, axis, start, end) if layer is None else layer

    def _matrix(self, x: View) -> View | None:
        """A product with a constant matrix, of rows; one from the left is one of columns."""
        given, said, rank = dict(self._node.parameters), self._said, len(x.shape)
        bias, (role, constant) = given.pop("bias", None), next(iter(given.items()), ("", None))
        left, turned = role == "left", [bool(said.get(name)) for name in ("transpose_a", "transpose_b")]
        if constant is None or len(constant.shape) != _MATRIX or rank < _MATRIX or (left and (bias or any(turned))):
            return None
        swapped, across = (*range(rank - 2), rank - 1, rank - 2), left or turned[1]
        matrix = Stored(constant.transposed if across else constant.numpy)
        view = self._made.transposed(x, swapped) if left or turned[0] else x
        weights = matrix, None if bias is None else Stored(bias.numpy)
        found = multiplied(self._made, view, weights, constant.shape[0 if across else 1])
        return self._made.transposed(found, swapped) if left else found

    def _convolution(self, x: View) -> View | None:
        weight, bias = (self._node.parameters.get(role) for role in ("weight", "bias"))
        rank = len(self._shape)
        if weight is None or len(x.shape) != rank:
            return None
        shape = tuple(self._shape[axis] for axis in channels_first(rank)) if self._is_last(rank) else self._shape
        weights = Stored(weight.numpy), None if bias is None else Stored(bias.numpy)
        view = self._first(x)
        found = convolved(self._made, self._node.op, view, weights, dict(self._said), (weight.shape, shape))
        return self._as_laid_out(found)

    def _batch_normalization(self, x: View) -> View | None:
        """A factor and an offset by channel, in the layer in front where there's one."""
        node, rank = self._node, len(x.shape)
        given = {role: item.numpy for role, item in node.parameters.items()}
        if not {"mean", "variance"} <= given.keys() or len(node.inputs) != 1:
            return None
        said = self._said.get("epsilon")
        epsilon = float(said) if isinstance(said, int | float) else 0.0

        def factor() -> Array:
            scale = given["scale"]() if "scale" in given else np.float64(1)
            return np.asarray(scale / np.sqrt(given["variance"]().astype(np.float64) + epsilon))

        def parts() -> tuple[Array, Array]:
            bias = given["bias"]() if "bias" in given else np.float64(0)
            return np.asarray(bias), np.asarray(given["mean"]().astype(np.float64) * factor())

        offset = Stored(lambda: parts()[0] - parts()[1], lambda: np.abs(parts()[0]) + np.abs(parts()[1]), FOLDED)
        axis = rank - 1 if node.channels_last or rank < _MATRIX else 1
        channels = (x.shape[axis], *(1,) * (rank - 1 - axis))
        numbers = Stored(factor, roundings=FOLDED), offset
        if lies_along(self._made, x, channels):
            return scaled(self._made, x, *numbers)
        by_axis = [self._made.constant(_along(item, channels), channels) for item in numbers]
        product = self._elementwise("Mul", [x, by_axis[0]], (), x.shape)
        return _view(self._elementwise("Add", [product, by_axis[1]], (), x.shape))

    # Element by element

    def _operands(self) -> list[Operand]:
        """What it reads, with the constant at its place: a number where it's one."""
        found: list[Operand] = list(self._views)
        operand = self._node.parameters.get("operand")
        if operand is not None:
            constant = self._made.constant(Stored(operand.numpy), operand.shape)
            found.insert(0 if self._node.attributes.get("constant_first") else len(found), constant)
        return found

    def _elementwise(self, op: str, operands: Sequence[Operand], words: Words, shape: Shape) -> Operand:
        if op in {"Add", "Sub", "Mul", "Div"} and len(operands) == _BINARY:
            layer = folded(self._made, op, *operands)
            if layer is not None:
                return layer
        return self._made.elementwise(op, operands, words, shape)

    def _by_equation(self, x: View) -> View | None:
        node, said = self._node, self._said
        text, view = TANH_GELU if said.get("approximate") == "tanh" else EQUATIONS[node.op], self._first(x)
        given = {role: (Stored(item.numpy), item.shape) for role, item in node.parameters.items()}
        axes = _whole_numbers(said.get("axes"))
        if node.op == "InstanceNormalization":
            axes = tuple(range(2, len(view.shape)))
            around = (1,) * len(axes)
            given = {role: (_along(item, (*size, *around)), (*size, *around)) for role, (item, size) in given.items()}
        if node.op == "Clip":
            bounds = [name for name in ("min", "max") if said.get(name) is not None or name in given]
            text = {"min": "Max(x, min)", "max": "Min(x, max)"}.get("".join(bounds), text)
            if not bounds:
                return x
        names = names_in(parse(text))
        known = {name: self._made.constant(*given[name]) for name in names if name in given}
        found = self._evaluated(text, {"x": view, **known}, axes)
        return None if found is None else self._as_laid_out(found)

    def _in_groups(self, x: View) -> View | None:
        """A normalization of groups of channels: that of rows in another shape, then a factor and an offset."""
        view, groups = self._first(x), self._said.get("groups")
        if not isinstance(groups, int) or len(view.shape) < _MATRIX:
            return None
        rows = view.reshaped((view.shape[0], groups, view.size // (view.shape[0] * groups)))
        found = self._evaluated(EQUATIONS["InstanceNormalization"], {"x": rows}, (_MATRIX,))
        found = None if found is None else found.reshaped(view.shape)
        for op, role in (("Mul", "scale"), ("Add", "bias")):
            item, channels = self._node.parameters.get(role), (view.shape[1], *(1,) * (len(view.shape) - _MATRIX))
            if item is not None and found is not None:
                constant = self._made.constant(_along(Stored(item.numpy), channels), channels)
                found = _view(self._elementwise(op, [found, constant], (), view.shape))
        return None if found is None else self._as_laid_out(found)

    def _as_laid_out(self, view: View) -> View:
        rank = len(view.shape)
        return self._made.transposed(view, channels_last(rank)) if self._is_last(rank) else view

    def _evaluated(self, text: str, given: Mapping[str, Operand], axes: tuple[int, ...]) -> View | None:
        """What an equation computes of this node's operands and attributes; None if it needs something else.

        Args:
            text: The equation.
            given: What its names stand for that are no attributes.
            axes: Of its reductions.
        """
        said, expression = self._said, parse(text)
        known: dict[str, Operand] = {"scale": 1.0, "bias": 0.0}
        known |= {name: float(item) for name, item in said.items() if isinstance(item, int | float)}
        known |= given
        if not set(names_in(expression)) <= known.keys():
            return None

        def call(term: Term, operands: list[Operand]) -> Operand:
            if term.operator.startswith("Reduce"):
                return self._made.reduced(term.operator, _required(operands[0]), axes)
            if term.operator == "Softmax" and isinstance(axis := said.get("axis"), int):
                return self._made.softmax(_required(operands[0]), axis)
            words = {name: known.get(str(item), item) for name, item in term.attributes}
            if term.operator in EQUATIONS and term.operator not in _NOT_EQUAL:
                names = dict(zip(("x", "min", "max"), operands, strict=False)) | words
                inner: Operand = computed(parse(EQUATIONS[term.operator]), names, float, call)
                return inner
            shape = np.broadcast_shapes(*(item.shape for item in operands if isinstance(item, View)))
            return self._elementwise(term.operator, operands, tuple(sorted(words.items())), shape)

        number: Callable[[float], Operand] = float
        return _view(computed(expression, known, number, call))


def _along(stored: Stored, shape: Shape) -> Stored:
    """Numbers by channel, with axes of size 1 behind."""

    def seen(load: Callable[[], Array]) -> Callable[[], Array]:
        return lambda: load().reshape(shape)

    return Stored(seen(stored.load), None if stored.size is None else seen(stored.size), stored.roundings)


def _whole_numbers(item: Attribute) -> tuple[int, ...]:
    """An attribute of several whole numbers; () of what's none."""
    return tuple(one for one in item if isinstance(one, int)) if isinstance(item, tuple) else ()


def _view(item: Operand) -> View | None:
    return item if isinstance(item, View) else None


def _required(item: Operand) -> View:
    if not isinstance(item, View):
        raise TypeError(f"{item} has no axes")
    return item
