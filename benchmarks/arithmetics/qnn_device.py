"""Qualcomm's HTP, simulated by ONNX Runtime's plugin, in an interpreter that has `onnxruntime-qnn`.

`python qnn_device.py`, then requests as lines. Each is JSON: "model" (ONNX with QuantizeLinear and DequantizeLinear,
without symbolic sizes), "inputs" and "outputs" (.npz). The first line of the answers has the version; each further
one is {} or {"error": words}; all begin with "answer". What HTP has no kernel for runs on the processor.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import onnxruntime
import onnxruntime_qnn


def main() -> None:
    """Answer requests until there are no more."""
    onnxruntime.register_execution_provider_library("QNNExecutionProvider", onnxruntime_qnn.get_library_path())
    found = [item for item in onnxruntime.get_ep_devices() if item.ep_name == "QNNExecutionProvider"]
    _say({"version": onnxruntime_qnn.__version__})
    for line in sys.stdin:
        _say(_answer(found, json.loads(line)))


def _say(what: dict[str, str]) -> None:
    """Behind a mark, since the plugin writes lines of its own."""
    print("answer " + json.dumps(what), flush=True)


def _answer(devices: list[Any], asked: dict[str, Any]) -> dict[str, str]:
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.add_provider_for_devices(devices, {"backend_path": onnxruntime_qnn.get_qnn_htp_path()})
        session = onnxruntime.InferenceSession(asked["model"], options)
        names = [item.name for item in session.get_outputs()]
        arrays = session.run(names, dict(np.load(asked["inputs"])))
        np.savez(asked["outputs"], **dict(zip(names, arrays, strict=True)))
    except Exception as error:  # noqa: BLE001 (whatever it raises, it's the answer)
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    return {}


if __name__ == "__main__":
    main()
