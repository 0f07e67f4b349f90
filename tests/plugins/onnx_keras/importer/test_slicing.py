import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_cases import check, check_text, imported, layers_of, node_model, random, together

from conrepair.ground.runtime.errors import ConversionError

IMAGE = {"x": random(2, 2, 5, 6)}
CONV = {"w": random(3, 2, 2, 2, seed=5)}
FAR = 2**63 - 1


def numbers(**values):
    return {name: np.array(value, np.int64) for name, value in values.items()}


# --- Slice ---------------------------------------------------------------------------------------------------

SLICES = [
    {"starts": [1], "ends": [3]},
    {"starts": [1, 0], "ends": [3, 2], "axes": [1, 2]},
    {"starts": [0], "ends": [FAR], "axes": [1]},
    {"starts": [-3], "ends": [-1], "axes": [-1]},
    {"starts": [-100], "ends": [100], "axes": [1]},
    {"starts": [1], "ends": [2**31 - 1], "axes": [2]},
    {"starts": [2], "ends": [FAR], "axes": [0]},
]


@together("parameters", SLICES)
def test_slice(parameters):
    x = {"x": random(5, 6, 7)}
    check("Slice", x, opset=9, **parameters)
    check("Slice", x, numbers(**parameters), opset=13)


@together(
    ("start", "end", "step"),
    [(0, FAR, 2), (1, 6, 3), (-1, -FAR, -1), (5, 1, -2), (FAR, -FAR, -1), (-1, -100, -3), (4, -7, -1), (3, 0, -1),
     (100, 0, -1), (-2, 1, -1), (0, -(2**63), -1)],
)  # fmt: skip
def test_slice_with_steps(start, end, step):
    check("Slice", {"x": random(6, 7)}, numbers(starts=[start], ends=[end], axes=[1], steps=[step]))
    check("Slice", {"x": random(6, 7)}, numbers(starts=[start], ends=[end], axes=[0], steps=[step]))


@together("dtype", ["int64", "bool", "float16", "uint8"])
def test_slice_of_other_types(dtype):
    check("Slice", {"x": random(5, 6, dtype=dtype)}, numbers(starts=[1], ends=[3]))


@together("axis", [0, 1, 2, 3, -3])
def test_slice_behind_a_convolution(axis):
    text = "a = Conv (x, w) y = Slice (a, starts, ends, axes)"
    check_text(text, IMAGE, CONV | numbers(starts=[1], ends=[FAR], axes=[axis]), symbolic={"x": ["n", 2, "h", "w"]})


def test_slice_of_everything_is_nothing():
    text = "a = Slice (x, starts, ends) y = Relu (a)"
    network = check_text(text, {"x": random(5, 6)}, numbers(starts=[0, 0], ends=[5, FAR]), symbolic={"x": [5, "n"]})
    assert layers_of(network) == ["Relu"]


@together(("start", "end", "step"), [(1, FAR, 1), (0, 2, 1), (-2, FAR, 1), (0, -1, 1), (0, FAR, 2), (-1, -FAR, -1)])
def test_sizes_behind_a_slice_of_an_open_axis(start, end, step):
    """The batch that is left isn't the batch of the input."""
    text = "a = Slice (x, starts, ends, axes, steps) s = Shape (a) b = Expand (one, s) y = Add (b, a)"
    constants = numbers(starts=[start], ends=[end], axes=[0], steps=[step]) | {"one": np.float32([[1]])}
    check_text(text, {"x": random(5, 3)}, constants, outputs=["y", "s"], symbolic={"x": ["n", 3]})


def test_slice_up_to_an_open_size():
    text = """d = Shape <start = 1, end = 2> (x)
    a = Slice (x, zero, d, one) y = Relu (a)"""
    check_text(text, {"x": random(2, 5)}, numbers(zero=[0], one=[1]), symbolic={"x": ["n", "m"]})
    text = "d = Shape <start = 1, end = 2> (x) y = Slice (x, zero, d, zero)"
    with pytest.raises(ConversionError, match="end m is known only by name"):
        check_text(text, {"x": random(2, 5)}, numbers(zero=[0], one=[1]), symbolic={"x": ["n", "m"]})


def test_slice_at_computed_places_is_refused():
    feeds = {"x": random(5, 6)} | numbers(starts=[1])
    with pytest.raises(ConversionError, match=r"Slice\(\) of node 'the_Slice'.*starts must be constant"):
        imported(node_model("Slice", feeds, numbers(ends=[3])))


def test_slice_from_behind_an_open_axis():
    feeds, symbolic = {"x": random(4, 3)}, {"x": ["n", 3]}
    for start, end in ((-1, -FAR), (FAR, -FAR), (-1, FAR), (2, 0), (3, -3)):
        check("Slice", feeds, numbers(starts=[start], ends=[end], axes=[0], steps=[-1]), symbolic=symbolic)
    with pytest.raises(ConversionError, match="a start of -2 with step -1 depends on an unknown size"):
        imported(node_model("Slice", feeds, numbers(s=[-2], e=[-FAR], a=[0], t=[-1]), symbolic=symbolic))


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.data())
def test_any_slice(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    axes = data.draw(st.lists(st.sampled_from(range(len(shape))), min_size=1, unique=True))
    steps = [data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in axes]
    bounds = st.integers(-8, 8) | st.sampled_from([FAR, -FAR, 2**31 - 1, -(2**31)])
    starts, ends = [data.draw(bounds) for _ in axes], [data.draw(bounds) for _ in axes]
    check("Slice", {"x": random(*shape)}, numbers(starts=starts, ends=ends, axes=axes, steps=steps))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_positions_up_to_an_open_sequence(dtype):
    table, symbolic = {"table": random(1, 16, 3, dtype=dtype)}, {"x": ["n", "s", 3]}
    for body, constants in (
        ("p = Slice (table, zero, d, one)", numbers(zero=[0], one=[1])),
        (
            "e = Concat <axis = 0> (d, two) p = Slice (table, zero, e, one)",
            numbers(zero=[0, -2], one=[1, 2], two=[2]),
        ),
    ):
        text = f"d = Shape <start = 1, end = 2> (x) {body} y = Cast <to = 1> (p)"
        check_text(text, {"x": random(2, 5, 3)}, table | constants, symbolic=symbolic)
    with pytest.raises(ConversionError, match="end s is known only by name"):
        check_text(text, {"x": random(2, 5, 3)}, table | numbers(zero=[1, 0], one=[1, 2], two=[2]), symbolic=symbolic)


# --- Gather --------------------------------------------------------------------------------------------------


@together("axis", [0, 1, 2, -1])
@together("indices", [2, [0], [2, 0, -1], [[0, 1], [-2, 2]], -1])
def test_gather(axis, indices):
    check("Gather", {"x": random(3, 4, 5)}, numbers(indices=indices), axis=axis)


@together("axis", [0, 1])
@together("dtype", ["int32", "int64"])
def test_gather_by_tensors(axis, dtype):
    check("Gather", {"x": random(3, 4, 5), "indices": np.array([[0, -1], [2, 1]], dtype)}, axis=axis)


@pytest.mark.parametrize("shape", [(6,), (2, 3), ()])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_embedding(shape, dtype):
    table, feeds = random(11, 4), {"i": random(*shape, dtype=dtype, low=0, high=11)}
    network = check("Gather", feeds, {"table": table}, inputs=["table", "i"])
    assert layers_of(network) == ["Embedding"]


def test_embedding_counts_from_behind():
    feeds = {"i": np.array([-1, -11, 3])}
    check("Gather", feeds, {"table": random(11, 4)}, inputs=["table", "i"])


@together("table", [(11,), (5, 11, 2)])
def test_gather_from_other_tables(table):
    feeds = {"i": np.array([[0, 4], [2, -1]])}
    check(
        "Gather",
        feeds,
        {"table": random(*table)},
        inputs=["table", "i"],
        axis=len(table) // 2 if table[0] == 5 else 0,
    )


@together("dtype", ["int64", "bool", "float64"])
def test_gather_from_tables_of_other_types(dtype):
    check("Gather", {"i": np.array([1, 3])}, {"table": random(7, 3, dtype=dtype)}, inputs=["table", "i"])


@together("axis", [0, 1, 2, 3])
@together("indices", [1, [1, 0]])
def test_gather_behind_a_convolution(axis, indices):
    text = f"a = Conv (x, w) y = Gather <axis = {axis}> (a, i)"
    check_text(text, IMAGE, CONV | numbers(i=indices), symbolic={"x": ["n", 2, "h", "w"]})


# --- Concat, Split, Tile -------------------------------------------------------------------------------------


@together("axis", [0, 1, 2, -1])
def test_concat(axis):
    shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
    for index, shape in enumerate(shapes):
        shape[axis] += index
    check("Concat", {f"x{index}": random(*shape, seed=index) for index, shape in enumerate(shapes)}, axis=axis)


def test_concat_of_one_and_with_a_constant():
    check("Concat", {"x": random(2, 3)}, axis=1)
    check("Concat", {"x": random(2, 3)}, {"c": random(2, 1)}, axis=1)


@together("dtype", ["int64", "bool", "float16"])
def test_concat_of_other_types(dtype):
    check("Concat", {"a": random(2, 3, dtype=dtype), "b": random(2, 1, dtype=dtype)}, axis=1)


@together("axis", [0, 1, 2, 3, -2])
@together("order", ["a, b", "b, a", "b, b, a"])
def test_concat_behind_a_convolution(axis, order):
    shape = [2, 3, 4, 5]
    shape[axis] = 2
    text = f"a = Conv (x, w) y = Concat <axis = {axis}> ({order})"
    check_text(text, IMAGE | {"b": random(*shape)}, CONV)


def test_concat_of_convolutions_stays_channels_last():
    text = "a = Conv (x, w) b = Conv (x, v) c = Concat <axis = 1> (a, b) y = Conv (c, u)"
    constants = CONV | {"v": random(1, 2, 2, 2), "u": random(2, 4, 1, 1)}
    assert layers_of(check_text(text, IMAGE, constants)).count("Transpose") == 2


def test_sizes_behind_a_concat_of_open_axes():
    text = "a = Concat <axis = 0> (x, z) s = Shape (a) b = Expand (one, s) y = Add (a, b)"
    feeds = {"x": random(5, 3), "z": random(2, 3)}
    constants = {"one": np.float32([[1]])}
    check_text(text, feeds, constants, outputs=["y", "s"], symbolic={"x": ["n", 3], "z": ["m", 3]})


@together("axis", [0, 1, -1])
def test_split(axis):
    x = {"x": random(6, 6, 6)}
    check("Split", x, opset=11, outputs=3, axis=axis)
    check("Split", x, opset=7, outputs=2, axis=axis % 3, split=[1, 5])
    check("Split", x, numbers(split=[1, 2, 3]), opset=13, outputs=3, axis=axis)
    check("Split", x, opset=18, outputs=2, axis=axis, num_outputs=2)


def test_split_into_unequal_parts():
    check("Split", {"x": random(7, 2)}, opset=18, outputs=4, num_outputs=4)
    check("Split", {"x": random(7, 2)}, opset=18, outputs=3, num_outputs=3)


def test_split_of_which_only_some_parts_are_used():
    for used in ("a", "b", "c"):
        check_text(f"a, b, c = Split <axis = 1> (x) y = Relu ({used})", {"x": random(2, 6)}, opset=13)


@together("axis", [1, 2, 3])
def test_split_behind_a_convolution(axis):
    size = (2, 3, 4, 5)[axis]
    text = f"a = Conv (x, w) y, z = Split <axis = {axis}> (a, parts)"
    check_text(text, IMAGE, CONV | numbers(parts=[1, size - 1]), outputs=["z", "y"])


def test_split_of_an_open_axis_is_refused():
    with pytest.raises(ConversionError, match=r"the sizes of input input.*--input"):
        imported(node_model("Split", {"x": random(4, 3)}, opset=13, outputs=2, symbolic={"x": ["n", 3]}))


@together("repeats", [[1, 1], [2, 3], [1, 4]])
def test_tile(repeats):
    check("Tile", {"x": random(2, 3)}, numbers(repeats=repeats))
    check("Tile", {"x": random(2, 3)}, numbers(repeats=repeats), symbolic={"x": ["n", 3]})


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64"])
def test_tile_by_an_open_batch(dtype):
    text = "d = Shape <end = 1> (x) r = Concat <axis = 0> (d, two) y = Tile (token, r)"
    constants = numbers(two=[2, 1]) | {"token": random(1, 2, 3, dtype=dtype)}
    check_text(text, {"x": random(4, 3)}, constants, symbolic={"x": ["n", 3]})
    constants["token"] = random(2, 2, 3, dtype=dtype)
    with pytest.raises(ConversionError, match="an axis longer than 1 is repeated"):
        check_text(text, {"x": random(4, 3)}, constants, symbolic={"x": ["n", 3]})


def test_tile_behind_a_convolution():
    check_text("a = Conv (x, w) y = Tile (a, r)", IMAGE, CONV | numbers(r=[2, 1, 3, 1]))


# --- Pad -----------------------------------------------------------------------------------------------------


@together("mode", ["constant", "reflect", "edge"])
@together("pads", [[0, 1, 2, 0, 2, 1], [0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 2]])
def test_pad(mode, pads):
    x = {"x": random(3, 4, 5)}
    check("Pad", x, opset=10, pads=pads, mode=mode)
    check("Pad", x, numbers(pads=pads), opset=13, mode=mode)


def test_pad_around():
    check("Pad", {"x": random(3, 4)}, numbers(pads=[1, 2, 2, 3]), opset=19, mode="wrap")


@together("pads", [[0, -1, 0, -2], [-1, 2, 0, -1], [1, -3, -2, 3]])
@together("mode", ["constant", "edge"])
def test_negative_pads_cut_off(pads, mode):
    check("Pad", {"x": random(4, 5)}, numbers(pads=pads), mode=mode)


def test_pad_with_numbers():
    check("Pad", {"x": random(3, 4)}, opset=10, pads=[1, 0, 0, 2], value=1.5)
    check("Pad", {"x": random(3, 4)}, numbers(pads=[1, 0, 0, 2]) | {"c": np.float32(-np.inf)})
    check("Pad", {"x": random(3, 4)}, numbers(pads=[1, 0, 0, 2]) | {"c": np.float32([2.5])}, opset=11)


def test_pad_of_some_axes():
    feeds, constants = {"x": random(3, 4, 5)}, numbers(pads=[1, 0, 2, 1], axes=[-1, 0])
    check("Pad", feeds, constants, inputs=["x", "pads", "", "axes"])
    check("Pad", feeds, constants | {"c": np.float32(3)}, inputs=["x", "pads", "c", "axes"])


@together("dtype", ["int32", "int64", "uint8", "bool", "float64"])
def test_pad_of_other_types(dtype):
    check("Pad", {"x": random(3, 4, dtype=dtype)}, numbers(pads=[1, 0, 0, 2]) | {"c": np.array(1, dtype)})


@together("axis", [0, 1, 2, 3])
@together("mode", ["constant", "reflect", "edge"])
def test_pad_behind_a_convolution(axis, mode):
    pads = [0] * 8
    pads[axis], pads[axis + 4] = 1, (0 if mode == "reflect" and axis == 0 else 1)
    check_text(f'a = Conv (x, w) y = Pad <mode = "{mode}"> (a, pads)', IMAGE, CONV | numbers(pads=pads))


def test_sizes_behind_pads_of_an_open_axis():
    text = "a = Pad (x, pads) s = Shape (a) b = Expand (one, s) y = Add (a, b)"
    constants = numbers(pads=[1, 0, 2, -1]) | {"one": np.float32([[1]])}
    check_text(text, {"x": random(5, 3)}, constants, outputs=["y", "s"], symbolic={"x": ["n", 3]})


def test_reflecting_an_open_axis_is_refused():
    feeds, shape = {"x": random(5, 3)}, {"x": ["n", 3]}
    with pytest.raises(ConversionError, match="with mode reflect the size of axis 0 must be known"):
        imported(node_model("Pad", feeds, numbers(pads=[1, 0, 0, 0]), mode="reflect", symbolic=shape))


@settings(derandomize=True, deadline=None, max_examples=25)
@given(st.data())
def test_any_pad(data):
    shape = data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=4))
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect"]))
    low = 0 if mode == "reflect" else -1
    pads = [data.draw(st.integers(low, min(shape) - 1)) for _ in range(2 * len(shape))]
    if mode != "constant":
        pads = [pad if min(shape) > 2 else abs(pad) for pad in pads]
    check("Pad", {"x": random(*shape)}, numbers(pads=pads), mode=mode)


# --- DepthToSpace and others ---------------------------------------------------------------------------------


@together("mode", ["DCR", "CRD"])
@together("batch", [2, "n"])
def test_depth_to_space(mode, batch):
    feeds = {"x": random(2, 12, 3, 4)}
    check("DepthToSpace", feeds, blocksize=2, mode=mode, symbolic={"x": [batch, 12, 3, 4]})
    check("DepthToSpace", feeds, opset=10, blocksize=2)


@together("batch", [2, "n"])
def test_space_to_depth(batch):
    check("SpaceToDepth", {"x": random(2, 3, 4, 6)}, blocksize=2, symbolic={"x": [batch, 3, 4, 6]})


@together("upper", [0, 1])
@together("k", [None, -2, 0, 1, 9])
@together("dtype", ["float32", "int64", "bool"])
def test_triangle(upper, k, dtype):
    feeds, constants = {"x": random(2, 4, 5, dtype=dtype)}, {} if k is None else {"k": np.int64(k)}
    check("Trilu", feeds, constants, upper=upper, symbolic={"x": ["n", 4, 5]})


@together("upper", [0, 1])
@together("k", [-1, 0, 1])
def test_triangle_of_open_sizes(upper, k):
    feeds, symbolic = {"x": random(2, 4, 5)}, {"x": ["n", "s", "t"]}
    check("Trilu", feeds, {"k": np.int64(k)}, upper=upper, symbolic=symbolic)
    check("Trilu", feeds, {"k": np.int64(k)}, upper=upper, symbolic={"x": [2, "s", 5]})


@together("axis", [-1, 0, 1, -2])
@together(("dtype", "depth"), [("int64", "int64"), ("int32", "int32"), ("float32", "float32")])
def test_one_hot(axis, dtype, depth):
    indices = np.array([[0, 3, -1], [2, 7, -4]], dtype)
    check("OneHot", {"i": indices}, {"depth": np.array(4, depth), "values": np.float32([-1, 2.5])}, axis=axis)


@together("dtype", ["int64", "float32"])
def test_one_hot_of_other_types(dtype):
    constants = {"depth": np.array([5]), "values": np.array([0, 1], dtype)}
    check("OneHot", {"i": np.array([0, 9, -9, 4])}, constants)


@together("attributes", [{}, {"axis": 0}, {"axis": 1}, {"axis": -1}])
def test_compress(attributes):
    condition = np.array([False, True, True]) if attributes else np.array([0, 1, 0, 1, 1], bool)
    check("Compress", {"x": random(3, 4)}, {"condition": condition}, **attributes)


def test_one_hot_with_values_that_are_computed():
    feeds = {"indices": np.int64([[0, 2], [-1, 5]]), "values": np.float32([-1.5, 2.5])}
    check("OneHot", feeds, {"depth": np.int64(3)}, inputs=["indices", "depth", "values"], axis=1)
    check("OneHot", {"values": feeds["values"]}, {"indices": feeds["indices"], "depth": np.int64(3)},
          inputs=["indices", "depth", "values"])  # fmt: skip


@together("pads", [[1, 0, 2, 3], [0, -1, 2, 1]])
def test_padding_with_a_value_that_is_computed(pads):
    names = ["x", "pads", "fill"]
    check("Pad", {"x": random(3, 4), "fill": np.float32(7)}, {"pads": np.int64(pads)}, inputs=names)
    check("Pad", {"fill": np.float32(7)}, {"x": random(3, 4), "pads": np.int64(pads)}, inputs=names)
    check("Pad", {"x": random(3, 4), "fill": np.float32(7)}, {"pads": np.int64([1, 0, 2, 0])},
          inputs=names, mode="edge")  # fmt: skip
