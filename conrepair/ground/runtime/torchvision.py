"""Import torchvision whatever torch it was built against.

The registry's torchvision wheel is built against the CUDA build of torch. Beside a CPU build its import
fails ("operator torchvision::nms does not exist"), because it registers shapes for operators whose C++
library didn't load. Declaring the two schemas first lets the import succeed; the operators themselves
(non-maximum suppression, for detectors) stay unavailable.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

_SCHEMAS = (
    "torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def import_torchvision() -> ModuleType:
    """Return the `torchvision` module, with missing operator schemas declared if need be.

    Raises:
        ImportError: if torchvision isn't installed.
        RuntimeError: if its import fails for another reason than the missing operators.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = importlib.import_module("torch.library")
    for schema in _SCHEMAS:
        name, _, signature = schema.partition("(")
        library.define(name, f"({signature}")
    return importlib.import_module("torchvision")
