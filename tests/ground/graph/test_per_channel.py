"""Numbers for each channel, as they're broadcast."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conrepair.ground.graph.channels import per_channel


@given(st.data())
def test_each_channel_has_its_number(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    numbers = np.arange(shape[axis], dtype=np.float64)
    spread = np.broadcast_to(per_channel(numbers, axis, len(shape)), shape)
    for channel, number in enumerate(numbers):
        assert (np.take(spread, channel, axis) == number).all()


@pytest.mark.parametrize("axis", [None, 1])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_number_is_for_all(shape: tuple[int, ...], axis: int | None) -> None:
    assert per_channel(np.full(shape, 3.0), axis, 3).shape == (1, 1, 1)
