"""Arrays of which each batch has its own size, as rows one behind the other and how many each has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def as_rows(parts: Sequence[Array]) -> tuple[Array, list[int]]:
    """Rows along the axis whose size varies, along the first where none does; single numbers where several do.

    Args:
        parts: Of one type, one or more.

    Returns:
        The rows, and how many each part has.
    """
    ranks = {part.ndim for part in parts}
    sizes = zip(*(part.shape for part in parts), strict=True) if len(ranks) == 1 else ()
    varying = [axis for axis, found in enumerate(sizes) if len(set(found)) > 1]
    if len(ranks) == 1 and not varying and parts[0].ndim:
        return np.concatenate(parts), [len(part) for part in parts]
    if len(varying) != 1:
        return np.concatenate([part.reshape(-1) for part in parts]), [part.size for part in parts]
    turned = [np.moveaxis(part, varying[0], 0) for part in parts]
    if varying[0] and turned[0].shape[1] == 1:  # an axis of one sample in front of it
        turned = [part[:, 0] for part in turned]
    return np.concatenate(turned), [len(part) for part in turned]
