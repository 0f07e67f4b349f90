"""What workers do, where the other tests don't see it."""

from __future__ import annotations

from conrepair.data.tensor_spec import Dimension, TensorSpec
from conrepair.frameworks.model import Model
from conrepair.pipeline.jobs import _with_declared_layouts


def layout_of(declared: tuple[Dimension, ...], found: tuple[Dimension, ...]) -> str | None:
    model = Model("onnx", "net.onnx", "", inputs=(TensorSpec("x", declared, "float32", layout="NCHW"),))
    (spec,) = _with_declared_layouts((TensorSpec("x", found, "float32"),), model)
    return spec.layout


def test_a_declared_layout_is_not_that_of_a_conversion_which_moved_the_channels() -> None:
    assert layout_of(("batch", 3, 224, 224), ("n", 3, 224, 224)) == "NCHW"
    assert layout_of(("batch", 3, 224, 224), ("n", 3, "h", "w")) == "NCHW"
    assert layout_of(("batch", 3, 224, 224), ("n", 224, 224, 3)) is None
    assert layout_of(("batch", 3, 224, 224), ("n", 3)) is None
