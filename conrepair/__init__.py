"""Check whether a converted neural network still gives the same predictions, name the faulty layer, repair it."""

from __future__ import annotations

import importlib
import os  # and nothing that isn't loaded yet: `python -m conrepair` might find it in the current folder
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from conrepair.api import audit, build, compare, convert, execute, inputs, inspect, localize, repair
    from conrepair.application.report.built import Built
    from conrepair.application.report.result import AuditResult
    from conrepair.application.report.results import Compared, Converted, Executed, Localized, Repaired
    from conrepair.formats.models.model import Description
    from conrepair.ground.runtime.errors import ConrepairError
    from conrepair.verdicts.evaluate.verdict import Verdict

    # Of a package of its own, which has its names here by entry points of `conrepair.functions`.
    from conrepair_lab.functions import generated as generated
    from conrepair_lab.functions import trace as trace
    from conrepair_lab.generate.generated import Generated as Generated
    from conrepair_lab.report.tracing.folder import TracedModel as TracedModel

__version__ = "0.2.0"
__all__ = [
    "AuditResult",
    "Built",
    "Compared",
    "ConrepairError",
    "Converted",
    "Description",
    "Executed",
    "Localized",
    "Repaired",
    "Verdict",
    "__version__",
    "audit",
    "build",
    "compare",
    "convert",
    "execute",
    "inputs",
    "inspect",
    "localize",
    "repair",
]

_ELSEWHERE = {
    "AuditResult": "application.report.result",
    "Built": "application.report.built",
    "ConrepairError": "ground.runtime.errors",
    "Description": "formats.models.model",
    "Verdict": "verdicts.evaluate.verdict",
} | dict.fromkeys(("Compared", "Converted", "Executed", "Localized", "Repaired"), "application.report.results")

# ONNX Runtime would leave an identifier in the user's cache and send events, from when it's imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")


def __dir__() -> list[str]:
    """What there is, also before it's imported: for completion, and for what Python says of a name that's wrong."""
    return [*globals(), *__all__]


if not TYPE_CHECKING:  # which would take any name for one of these

    def __getattr__(name: str) -> object:
        """Import a verb or a type when it's asked for: `import conrepair` alone costs next to nothing."""
        if name in __all__:
            return getattr(importlib.import_module(f"conrepair.{_ELSEWHERE.get(name, 'api')}"), name)
        hint = ""
        if not name.startswith("_"):  # Python itself asks for those
            from conrepair.ground.runtime.plugins import FUNCTIONS

            if name in FUNCTIONS:  # as `trace`, of the laboratory
                return FUNCTIONS[name]
            hint = importlib.import_module("conrepair.ground.runtime.libraries").brings(name)
        raise AttributeError(
            f"module 'conrepair' has no attribute {name!r}{hint}", name=name, obj=sys.modules[__name__]
        )
