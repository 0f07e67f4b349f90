"""What `conrepair` has by name: `__init__.py` imports each of these when it's asked for."""

from conrepair.api import audit as audit
from conrepair.api import build as build
from conrepair.api import compare as compare
from conrepair.api import convert as convert
from conrepair.api import execute as execute
from conrepair.api import inputs as inputs
from conrepair.api import inspect as inspect
from conrepair.api import localize as localize
from conrepair.api import repair as repair
from conrepair.application.report.built import Built as Built
from conrepair.application.report.result import AuditResult as AuditResult
from conrepair.application.report.results import Compared as Compared
from conrepair.application.report.results import Converted as Converted
from conrepair.application.report.results import Executed as Executed
from conrepair.application.report.results import Localized as Localized
from conrepair.application.report.results import Repaired as Repaired
from conrepair.formats.models.model import Description as Description
from conrepair.ground.runtime.errors import ConrepairError as ConrepairError
from conrepair.verdicts.evaluate.verdict import Verdict as Verdict

# Of a package of its own, which has its names here by entry points of `conrepair.functions`.
from conrepair_lab.functions import generated as generated
from conrepair_lab.functions import trace as trace
from conrepair_lab.generate.generated import Generated as Generated
from conrepair_lab.report.tracing.folder import TracedModel as TracedModel

__version__: str
