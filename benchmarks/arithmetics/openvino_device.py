"""OpenVINO on the processor, in an interpreter that has it: `python openvino_device.py`, then requests as lines.

Each line is JSON: "model" (ONNX), "inputs" and "outputs" (.npz), "properties" (of the plugin), "tensors" (names of
tensors on the way that are written, too). The first line of the answers has the version and what the processor can;
each further one is {} or {"error": words}; all begin with "answer". Needs only `openvino` and `numpy`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import openvino


def main() -> None:
    """Answer requests until there are no more."""
    core = openvino.Core()
    about = {
        "version": openvino.__version__,
        "can": list(core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")),
        "usual": core.get_property("CPU", "INFERENCE_PRECISION_HINT").get_type_name(),
    }
    print("answer " + json.dumps(about), flush=True)
    for line in sys.stdin:
        print("answer " + json.dumps(_answer(core, json.loads(line))), flush=True)


def _answer(core: openvino.Core, asked: dict[str, Any]) -> dict[str, str]:
    try:
        model = core.read_model(asked["model"])
        usual = len(model.outputs)
        for name in asked["tensors"]:
            try:
                model.add_outputs(name)
            except RuntimeError:  # what it folded or fused when it read the file has no such name any more
                continue
        compiled = core.compile_model(model, "CPU", asked["properties"])
        given = dict(np.load(asked["inputs"]))
        found = compiled(given)
        known = {*asked["tensors"]}
        arrays = {}
        for place, port in enumerate(compiled.outputs):
            names = port.get_names()
            name = next(iter(sorted(names & known)), None) if place >= usual else None
            arrays[name or port.get_any_name()] = found[port]
        np.savez(asked["outputs"], **arrays)
    except Exception as error:  # noqa: BLE001 (whatever it raises, it's the answer)
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    return {}


if __name__ == "__main__":
    main()
