import itertools
from pathlib import Path

import keras
import numpy as np
import pytest
from onnx_cases import check, random, together

from conrepair_onnx_keras import importer
from conrepair_onnx_keras.importer.indexing import add

SHAPES = [
    (4,),
    (4, 1),
    (1, 4),
    (4, 4),
    (1, 4, 1),
    (4, 1, 1),
    (1, 1, 4),
    (3, 4, 4),
    (3, 4, 1),
    (4, 4, 4),
    (2, 3, 4, 4),
]


def fits(shapes):
    pairs = itertools.zip_longest(shapes[0][::-1], shapes[1][::-1], fillvalue=1)
    return all(1 in pair or pair[0] == pair[1] for pair in pairs)


@pytest.mark.parametrize("shapes", filter(fits, itertools.product(SHAPES, SHAPES)), ids=str)
def test_broadcasting(shapes):
    x, y = (random(*shape, seed=place) for place, shape in enumerate(shapes))
    np.testing.assert_array_equal(np.asarray(add(x, y)), x + y)


@pytest.mark.parametrize(
    "shapes", [((None, 4), (None, 1)), ((None, None), (None, None)), ((4, None, 1), (1, None))], ids=str
)
def test_sizes_that_happen_to_match(shapes):
    inputs = [keras.Input(batch_shape=shape) for shape in shapes]
    network = keras.Model(inputs, add(*inputs))
    feeds = [
        random(*(4 if size is None else size for size in shape), seed=place) for place, shape in enumerate(shapes)
    ]
    np.testing.assert_array_equal(np.asarray(network(feeds)), feeds[0] + feeds[1])


def test_usual_shapes_need_one_operation():
    image, bias = keras.Input((8, 8, 16)), np.ones(16, np.float32)
    network = keras.Model(image, add(add(image, bias), image))
    assert [type(operation).__name__ for operation in network.operations] == ["InputLayer", "Add", "Add"]


@together("operator", ["Add", "Sum", "Mean"])
def test_operators(operator):
    check(operator, {"x": random(3, 4, 4), "y": random(1, 4, 1)})
    check(operator, {"x": random(1, 4, 1), "y": random(1, 1, 4)})


@together("dtype", ["uint8", "int64"])
def test_integers(dtype):
    check("Add", {"x": random(1, 4, 1, dtype=dtype, high=90), "y": random(1, 1, 4, dtype=dtype, high=90)})


def test_product_and_column():
    check("Gemm", {"a": random(4, 3), "b": random(3, 4), "c": random(4, 1)})


def test_rules_add_by_nothing_else():
    """`keras.ops.add` takes some operands for a bias."""
    folder = Path(importer.__file__).parent / "operators"
    assert [file.name for file in folder.glob("*.py") if "ops.add" in file.read_text(encoding="utf-8")] == []
