"""Convolutions as TensorFlow's functions, which it may rewrite before it runs them: PyTorch computes the same."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

from conrepair.formats.editing.operation import NotEditableError, Operation
from conrepair.formats.keras.edit.graft import KerasWriter
from conrepair.formats.tensorflow.edit.windows import WINDOWS

_PADS = [(0, 0), (1, 1), (0, 1), (2, 1)]  # before and behind


@pytest.mark.parametrize("before_and_behind", _PADS, ids=str)
@pytest.mark.parametrize(("group", "axes"), [(1, 2), (4, 2), (1, 3), (1, 1)])
def test_pads_of_a_convolution_with_a_bias(group: int, axes: int, before_and_behind: tuple[int, int]) -> None:
    generator = np.random.default_rng(5)
    weight = generator.normal(size=(4, 4 // group, *[3] * axes)).astype(np.float32)
    bias = generator.normal(size=4).astype(np.float32)
    tensor = generator.normal(size=(2, *[8] * axes, 4)).astype(np.float32)
    before, behind = before_and_behind
    attributes = {"group": group, "strides": (2,) * axes, "pads": (before,) * axes + (behind,) * axes}
    operation = Operation("Conv", ("x",), attributes, {"weight": weight, "bias": bias}, channels_last=True)
    result = tf.function(lambda x: tf.nn.relu6(WINDOWS["Conv"](operation, [x])))(tensor).numpy()
    padded = np.pad(np.moveaxis(tensor, -1, 1), [(0, 0), (0, 0), *[before_and_behind] * axes])
    convolve = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}[axes]
    arrays = (torch.from_numpy(array) for array in (padded, weight, bias))
    expected = convolve(*arrays, stride=2, groups=group).clamp(0, 6).numpy()
    np.testing.assert_allclose(np.moveaxis(result, -1, 1), expected, atol=1e-5)


def test_a_pooling_with_places_between_its_own_is_refused() -> None:
    window = {"kernel_shape": (3, 3), "strides": (1, 1), "dilations": (2, 2), "pads": (0,) * 4}
    operation = Operation("MaxPool", ("x",), window, channels_last=True)
    with pytest.raises(NotEditableError, match="no dilations"):
        WINDOWS["MaxPool"](operation, [tf.zeros((1, 8, 8, 4))])
    with pytest.raises(NotEditableError, match="no dilations"):
        KerasWriter("pooled").compute([operation], {"x": keras.Input((8, 8, 4))}.__getitem__)
