"""What models of somebody have: each operator with the types and values that were seen when it was computed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from conrepair.frameworks.proto_file import read_by
from conrepair.generate.learned.closing import Closing
from conrepair.generate.learned.instances import MOST, Instance, spread
from conrepair.generate.learned.trying import tried
from conrepair.generate.real.opened import OpenedFile, opened
from conrepair.generate.real.units import units_of
from conrepair.generate.tensors import REALS

_FREE = 8
"""Elements that a constant of real numbers has at least to be tried with other values: it's a weight."""


def harvest(paths: Iterable[Path]) -> tuple[Instance, ...]:
    """Learn of models; a model that was generated is one as well.

    Args:
        paths: ONNX files.

    Raises:
        UsageError: if one can't be read or computed.
    """
    return spread(item for path in paths for item in _instances(opened(path)))


def _instances(model: OpenedFile) -> Iterator[Instance]:
    seen = set()
    for op, case in _cases(model):
        key = (op, tuple((array.dtype.name, array.shape) for array in case.feeds.values()), *map(str, case.nodes))
        if key not in seen:
            seen.add(key)
            item = tried(op, case, model.name)
            if item is not None:
                yield item


def _cases(model: OpenedFile) -> Iterator[tuple[str, Closing]]:
    for unit in units_of(model):
        feeds = {name: model.values[name] for name in unit.reads}
        held = []
        for name in dict.fromkeys(name for node in unit.nodes for name in read_by(node)):
            if name in model.constants:
                array = model.constant(name)
                if array.dtype.name in REALS and array.size > _FREE:
                    feeds[name] = array
                else:
                    held.append(model.constants[name])
        sizes = [array.size for array in feeds.values()] + [model.values[name].size for name in unit.makes]
        if max(sizes, default=0) <= MOST:
            yield unit.op, Closing(list(unit.nodes), held, feeds, list(unit.makes))
