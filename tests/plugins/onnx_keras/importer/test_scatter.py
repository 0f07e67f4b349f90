import numpy as np
from onnx_cases import check, imported, layers_of, node_model, random, together

DATA = random(3, 4, 5)
REDUCTIONS = ["none", "add", "mul", "min", "max"]


def indices(*shape, high, low=None, seed=1):
    return np.random.default_rng(seed).integers(-high if low is None else low, high, shape)


@together("axis", [0, 1, 2, -1])
def test_gather_elements(axis):
    places = indices(2, 4, 3, high=3)
    check("GatherElements", {"x": DATA, "i": places}, axis=axis)
    check("GatherElements", {"x": DATA}, {"i": places.astype(np.int32)}, axis=axis)
    check("GatherElements", {"i": places}, {"x": DATA}, inputs=["x", "i"], axis=axis)


@together("dtype", ["int32", "int64", "uint8", "bool", "float16", "float64"])
def test_gather_elements_of_other_types(dtype):
    check("GatherElements", {"x": random(3, 4, dtype=dtype), "i": indices(3, 2, high=4)}, axis=1)


@together("axis", [0, 1])
def test_gather_elements_of_open_batch(axis):
    feeds = {"x": DATA, "i": indices(3, 4, 5, high=3)}
    check("GatherElements", feeds, axis=axis, symbolic={"x": ["n", 4, 5], "i": ["n", 4, 5]})


@together(
    ("shape", "high", "batch"),
    [((2, 1), 3, 0), ((2, 6, 2), 3, 0), ((3,), 3, 0), ((3, 2, 1), 4, 1), ((3, 2), 4, 1), ((3, 4, 2, 1), 5, 2)],
)
def test_gather_nd(shape, high, batch):
    chosen = indices(*shape, high=high)
    check("GatherND", {"x": DATA, "i": chosen}, batch_dims=batch)
    check("GatherND", {"x": DATA}, {"i": chosen}, batch_dims=batch)


def test_gather_nd_of_open_batch():
    feeds = {"x": DATA, "i": indices(3, 6, 1, high=4)}
    check("GatherND", feeds, batch_dims=1, symbolic={"x": ["n", 4, 5], "i": ["n", 6, 1]})
    feeds = {"x": DATA, "i": indices(6, 2, high=3)}
    check("GatherND", feeds, symbolic={"x": ["n", 4, 5], "i": ["m", 2]})


@together("reduction", REDUCTIONS)
@together("axis", [0, 1, -1])
def test_scatter_elements(axis, reduction):
    places = indices(2, 4, 3, high=3)
    if reduction == "none":  # which of several updates of one cell stays isn't defined
        places = np.argsort(random(2, 4, 3), axis=axis)
    feeds = {"x": DATA, "i": places, "u": random(2, 4, 3, seed=3)}
    check("ScatterElements", feeds, axis=axis, reduction=reduction)


@together("reduction", REDUCTIONS)
def test_scatter_elements_with_constants(reduction):
    places, updates = np.array([[0, -1], [2, 0]]), random(2, 2)
    for opset in (18, 21):
        check(
            "ScatterElements",
            {"x": random(3, 4)},
            {"i": places, "u": updates},
            axis=1,
            reduction=reduction,
            opset=opset,
        )
    check("ScatterElements", {"u": updates}, {"x": random(3, 4), "i": places}, inputs=["x", "i", "u"], axis=1)


def test_updates_of_cells_that_are_known_are_gathered():
    """TFLite has no operator that updates cells."""
    network = imported(node_model("ScatterND", {"x": DATA}, {"i": [[2], [0]], "u": random(2, 4, 5)}))
    assert not [layer for layer in layers_of(network) if "Scatter" in layer]


def test_scatter_elements_of_open_batch():
    feeds = {"x": DATA, "i": np.argsort(random(3, 4, 5), axis=1), "u": random(3, 4, 5, seed=3)}
    symbolic = {name: ["n", 4, 5] for name in feeds}
    check("ScatterElements", feeds, axis=1, symbolic=symbolic)


def test_scatter():
    feeds = {"x": DATA, "i": np.argsort(random(3, 4, 5), axis=1), "u": random(3, 4, 5, seed=3)}
    check("Scatter", feeds, axis=1, opset=9)


@together("reduction", REDUCTIONS)
@together("places", [[[2], [0]], [[[2, 1], [0, -4]], [[1, 0], [0, 3]]], [[2, 1, 0], [0, -1, -2]]])
def test_scatter_nd(places, reduction):
    places = np.array(places)
    updates = random(*places.shape[:-1], *DATA.shape[places.shape[-1] :], seed=3)
    check("ScatterND", {"x": DATA, "i": places, "u": updates}, reduction=reduction)
    check("ScatterND", {"x": DATA, "u": updates}, {"i": places}, inputs=["x", "i", "u"], reduction=reduction)


@together("reduction", ["add", "mul", "min", "max"])
def test_scatter_nd_to_one_cell_twice(reduction):
    feeds = {"x": DATA, "i": np.array([[1], [1], [-2]]), "u": random(3, 4, 5, seed=3)}
    check("ScatterND", feeds, reduction=reduction)


@together("dtype", ["int32", "int64", "bool", "float64"])
def test_scatter_of_other_types(dtype):
    feeds = {"x": random(3, 4, dtype=dtype), "i": np.array([[2], [0]]), "u": random(2, 4, dtype=dtype, seed=3)}
    check("ScatterND", feeds)


def test_scatter_nd_of_open_batch():
    feeds = {"x": DATA, "i": np.array([[0, 1], [-1, 3]]), "u": random(2, 5)}
    check("ScatterND", feeds, symbolic={"x": ["n", 4, 5]})


@together(("time", "batch"), [(0, 1), (1, 0)])
def test_reverse_sequence(time, batch):
    x, lengths = random(4, 4, 3), np.array([1, 4, 2, 3])
    check("ReverseSequence", {"x": x, "n": lengths}, time_axis=time, batch_axis=batch)
    check("ReverseSequence", {"x": x}, {"n": lengths}, time_axis=time, batch_axis=batch)
    symbolic = {"x": ["n", 4, 3] if batch == 0 else [4, "n", 3], "n": ["n"]}
    check("ReverseSequence", {"x": x, "n": lengths}, time_axis=time, batch_axis=batch, symbolic=symbolic)
