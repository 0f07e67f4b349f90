"""A schedule for the loops of any kernel on a CPU: tiles in registers, vectors, threads.

dlight has rules of that kind for GPUs only; its rules for CPUs are for matrix-vector products. Without a schedule TVM
computes one output element after the other, and a sum can't be turned into vectors as floats don't commute. Here a
tile of output elements is summed at a time: the innermost axis in vectors, the axis of channels beside it, so that
each value that is loaded takes part in several sums. The order of every single sum stays what it was.
"""

from __future__ import annotations

from typing import Any

# Floats in a vector, by the processor's feature: `llvm_get_vector_width` would tell of this machine, not the target.
_LANES = {"avx512f": 16, "avx": 8}
_PLAIN = 4
_VECTORS = 4  # that one channel's part of a tile may take
_FEW, _MANY = 8, 16  # vectors of a tile: half of the registers that a processor has
_WIDE = 16  # lanes from which on it has 32 (AVX-512)


class CpuLoops:
    """As `tvm.s_tir.dlight.base.ScheduleRule`."""

    def apply(self, function: Any, target: Any, _: bool) -> Any:
        """Schedule a kernel.

        Args:
            function: A `tirx.PrimFunc`.
            target: Of the compilation.

        Returns:
            The schedule; None for a kernel with a loop whose extent isn't known or that isn't a plain block.
        """
        from tvm import s_tir, tirx
        from tvm.s_tir.dlight.analysis import normalize_prim_func
        from tvm.target.codegen import target_has_features

        if not isinstance(function, tirx.PrimFunc) or target.kind.name != "llvm":
            return None
        schedule = s_tir.Schedule(function)
        blocks = normalize_prim_func(schedule)
        if blocks is None or any("O" in block.dom_kind() for block in blocks):
            return None
        if any(not isinstance(item.dom, int | tirx.IntImm) for block in blocks for item in block.iters):
            return None
        lanes = next((count for feature, count in _LANES.items() if target_has_features(feature, target)), _PLAIN)
        left = _without_inlined(schedule, blocks)
        done = []
        for block in left:
            if block.is_reduction():
                follower = _tile_sum(schedule, block, lanes)
                done += [] if follower is None else [schedule.get(follower).name_hint]
        for block in left:
            if not block.is_reduction() and block.name not in done:
                _vectorize(schedule, block.block_rv, lanes)
        return schedule


def tile_of(extent: int, limit: int) -> int:
    """The largest divisor of `extent` that isn't above `limit`."""
    return max(size for size in _divisors(extent) if size <= max(1, limit))


def _divisors(extent: int) -> list[int]:
    return [size for size in range(1, extent + 1) if extent % size == 0]


def _without_inlined(schedule: Any, blocks: list[Any]) -> list[Any]:
    """Write elementwise blocks into elementwise ones that read them; sums and what they read stay apart.

    Copies go everywhere: padding by nothing is one.
    """
    from tvm.s_tir.schedule import ScheduleError

    sums = {block.name for block in blocks if block.is_reduction()}
    left = []
    for block in blocks:
        readers = {schedule.get(reader).name_hint for reader in schedule.get_consumers(block.block_rv)}
        if block.name not in sums and readers and (not sums & readers or _is_copy(schedule.get(block.block_rv))):
            try:
                schedule.compute_inline(block.block_rv)
            except ScheduleError:  # it writes an output, or isn't injective
                left.append(block)
        else:
            left.append(block)
    return left


def _is_copy(block: Any) -> bool:
    from tvm.ir import TensorLoad
    from tvm.tirx import BufferStore

    return isinstance(block.body, BufferStore) and isinstance(block.body.value, TensorLoad)


def _vectorize(schedule: Any, block: Any, lanes: int) -> None:
    """The last axis in vectors, all others over threads."""
    loops = schedule.get_loops(block)
    if not loops:
        return
    *outer, last = loops
    more, last = schedule.split(last, [None, tile_of(_extent(schedule, last), lanes)])
    outer.append(more)
    schedule.parallel(schedule.fuse(*outer))
    schedule.vectorize(last)


def _tile_sum(schedule: Any, block: Any, lanes: int) -> Any:
    """A tile of sums in registers; see the module.

    Returns:
        The block that was computed with it, which needs no schedule of its own; None if there's none.
    """
    sums = block.block_rv
    pairs = list(zip(schedule.get_loops(sums), block.dom_kind(), strict=True))
    spatial, reduced = ([loop for loop, kind in pairs if kind == wanted] for wanted in "SR")
    if not spatial:
        spatial = [schedule.add_unit_loop(sums)]
    spatial, reduced = _longer_than_one(schedule, spatial), _longer_than_one(schedule, reduced)
    schedule.reorder(*spatial, *reduced)
    *outer, columns = spatial
    width = _extent(schedule, columns)
    vector_size = tile_of(width, lanes)
    groups = tile_of(width // vector_size, _VECTORS)
    more, *inside = schedule.split(columns, [None, groups, vector_size])
    vectors = groups
    # Where a sum takes one element of each channel, lines beside one another share the weights.
    if len(reduced) == 1 and len(outer) > 1:
        count = tile_of(_extent(schedule, outer[-1]), _VECTORS // groups)
        outer[-1], lines = schedule.split(outer[-1], [None, count])
        inside, vectors = [lines, *inside], vectors * count
    if outer:
        place = 0 if len(outer) > 1 else -1
        count = tile_of(_extent(schedule, outer[place]), (_MANY if lanes >= _WIDE else _FEW) // vectors)
        outer[place], channels = schedule.split(outer[place], [None, count])
        inside = [channels, *inside]
    schedule.reorder(*outer, more, *reduced, *inside)
    threads = schedule.fuse(*outer, more)
    schedule.parallel(threads)
    follower = _elementwise_reader(schedule, sums)
    kept = follower or schedule.cache_write(sums, 0, "global")
    schedule.reverse_compute_at(kept, threads)
    _write_out(schedule, inside, vector_size)
    first = schedule.decompose_reduction(sums, reduced[0])
    for tile in (first, kept):
        _write_out(schedule, schedule.get_loops(tile)[1:], vector_size)
    return follower


def _write_out(schedule: Any, loops: list[Any], vector_size: int) -> None:
    """The innermost loop of a tile in vectors, the others written out."""
    *outer, vector = loops
    if _extent(schedule, vector) > vector_size:
        more, vector = schedule.split(vector, [None, vector_size])
        outer.append(more)
    schedule.vectorize(vector)
    for loop in outer:
        schedule.unroll(loop)


def _elementwise_reader(schedule: Any, sums: Any) -> Any:
    """The only block that reads a sum, if it reads each element where it writes it, and writes no more; else None."""
    readers = schedule.get_consumers(sums)
    if len(readers) != 1:
        return None
    block = schedule.get(readers[0])
    written = schedule.get(sums).writes[0].source
    variables = [item.var for item in block.iter_vars]

    def plain(region: Any) -> bool:
        indices = [part.min for part in region.region if not _is_zero(part.min)]
        used = [variable for variable in variables if any(index.same_as(variable) for index in indices)]
        return len(used) == len(indices) == len(variables) and all(
            index.same_as(variable) for index, variable in zip(indices, variables, strict=True)
        )

    own = [region for region in block.reads if region.source.same_as(written)]
    if len(own) != 1 or not all(map(plain, [*own, *block.writes])):
        return None
    # A padding behind the last element reads where it writes, too, and writes more than there are sums.
    sizes = [int(size) for size in written.shape if int(size) > 1]
    return readers[0] if sizes == [extent for extent in _extents(block) if extent > 1] else None


def _extents(block: Any) -> list[int]:
    return [int(item.dom.extent) for item in block.iter_vars]


def _is_zero(index: Any) -> bool:
    from tvm import tirx

    return isinstance(index, tirx.IntImm) and int(index) == 0


def _longer_than_one(schedule: Any, loops: list[Any]) -> list[Any]:
    return [loop for loop in loops if _extent(schedule, loop) > 1] or loops[-1:]


def _extent(schedule: Any, loop: Any) -> int:
    return int(schedule.get(loop).extent)
