"""One case: a device computes a network, and `compare` and `localize` are asked about what it answers."""

from __future__ import annotations

import functools
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

import conrepair
from benchmarks.arithmetics.cases import RIGHT, Case
from benchmarks.arithmetics.devices import Computed, Device, Given, Missing
from benchmarks.arithmetics.faults import Fault, faulty
from benchmarks.arithmetics.networks import network
from benchmarks.arithmetics.prepared import Prepared, exactly, export, part_exactly, relative
from conrepair.ground.runtime.errors import ConrepairError

__all__ = ["ABOVE", "Trial"]

ABOVE = 3.0
"""How many times what an arithmetic changes a fault must change, to be asked for."""

Row = dict[str, Any]


class Trial:
    """Carries out cases, with networks that are made once."""

    def __init__(self, kept: Path, devices: Mapping[str, Device]) -> None:
        """Nothing is done yet.

        Args:
            kept: Folder for what cases share.
            devices: Those that are there.
        """
        self._kept, self._devices = kept, devices
        self.prepared = functools.lru_cache(maxsize=1)(self._prepared)
        torch.set_num_threads(1)

    def run(self, case: Case, scratch: Path) -> Row:
        """Carry out a case.

        Args:
            case: Which.
            scratch: For files.

        Returns:
            "status" ("measured"; "missing": the device can't; "no place": the fault has none; "not finite": the
            device's numbers), "words", and of a measured one: "effect", "cost", "part_effect", "part_cost"
            (relative L2), "layers" (at fault), "outputs" and "recorded" (what is said), "seconds".
        """
        one = self.prepared(case.network)
        found = None
        if case.fault != RIGHT:
            found = faulty(one.network.module, case.fault, np.random.default_rng(zlib.crc32(case.name.encode())))
            if found is None:
                return {"status": "no place", "words": ""}
        try:
            computed, about = self.computed(one, case, found, scratch)
        except Missing as missing:
            return {"status": "missing", "words": str(missing)}
        if not all(np.isfinite(array).all() for array in computed.recorded.values()):
            return {"status": "not finite", "words": ""}
        return {
            "status": "measured",
            "words": found.words if found else "",
            **about,
            **_asked(one, computed, scratch),
        }

    def computed(self, one: Prepared, case: Case, fault: Fault | None, scratch: Path) -> tuple[Computed, Row]:
        """What the device computes, and what's to be expected of it.

        Raises:
            Missing: if it can't.
        """
        feed = one.network.feed
        module, path, exact = one.network.module, one.path, one.exact
        if fault is not None:
            module, path = fault.module, scratch / "faulty.onnx"
            export(module, one.network, path)
            exact = exactly(module, feed)
        given = Given(module, path, feed, one.names)
        computed = self._devices[case.device].compute(given, case.arithmetic, scratch)
        cost = max(one.cost(case.arithmetic), relative(exact, computed.outputs["made"]))
        about: Row = {"effect": 0.0, "cost": cost, "part_effect": 0.0, "part_cost": 0.0, "layers": []}
        if fault is not None:
            about["effect"] = relative(one.exact, exact)
            about["part_effect"] = part_exactly(one.network.module, module, fault.place, feed)
            about["layers"] = one.layers_of(onnx.load(path), fault.place)
            about["part_cost"] = one.cost_at(about["layers"], case.arithmetic)
        return computed, about

    def _prepared(self, name: str) -> Prepared:
        return Prepared(network(name, self._kept), self._kept / f"{name}.onnx")


def _asked(one: Prepared, computed: Computed, scratch: Path) -> Row:
    np.savez(scratch / "inputs.npz", **one.feeds)
    np.savez(scratch / "outputs.npz", **computed.outputs)
    np.savez(scratch / "recorded.npz", **computed.recorded)
    options: Any = {"data": str(scratch / "inputs.npz"), "in_process": True}
    started = time.perf_counter()
    compared = _said(lambda: conrepair.compare(str(one.path), str(scratch / "outputs.npz"), **options))
    middle = time.perf_counter()
    localized = _said(lambda: conrepair.localize(str(one.path), str(scratch / "recorded.npz"), **options))
    seconds = [round(middle - started, 3), round(time.perf_counter() - middle, 3)]
    return {"outputs": compared, "recorded": localized, "seconds": seconds}


def _said(ask: Any) -> Row:
    try:
        result = ask()
    except ConrepairError as error:
        return {"verdict": "failed", "reason": str(error)[:300], "arithmetic": "", "faults": []}
    return {
        "verdict": str(result.verdict),
        "reason": str(result.reason)[:300],
        "arithmetic": str(getattr(result, "arithmetic", "")),
        "faults": [
            list(fault.source_layers) for fault in getattr(result, "faults", ()) if hasattr(fault, "source_layers")
        ],
    }
