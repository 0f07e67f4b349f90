"""What a person reads of a model."""

from __future__ import annotations

from conrepair.formats.models.model import Description
from conrepair.ground.data.tensor_spec import Quantization, TensorSpec


def test_what_integers_stand_for_is_listed() -> None:
    given = TensorSpec("image", ("batch", 48, 48, 3), "uint8", Quantization(1 / 255, 0))
    gives = TensorSpec("scores", ("batch", 5), "int8", Quantization(1 / 256, -128))
    told = Description.counted(["ADD"], {"int8": 3}, format="TFLite", inputs=(given,), outputs=(gives,))
    rows = dict(told.rows())
    assert rows["input"] == ("image: uint8[batch, 48, 48, 3], scale 0.00392156863 and zero point 0: holds 0 to 1")
    assert rows["output"] == "scores: int8[batch, 5], scale 0.00390625 and zero point -128: holds 0 to 0.9961"
