"""Which passes TVM ran, in order, and which of their applications it left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from conrepair.ground.runtime.errors import ConfigError
from conrepair.ground.runtime.words import meant

# They only call others, which are named in their place.
_SEQUENCES = {"sequential", "_pipeline"}
# Learned with TVM 0.27: networks were built for llvm (O3 and FastMathTransform) without each pass that ran, and
# without all that weren't needed so far. The last two lines are needed with TopK or CumSum, and (two of them, the
# others are mandatory in the catalogue) where sizes depend on values.
MANDATORY = frozenset(
    {
        *("LegalizeOps", "CallTIRRewrite", "LowerAllocTensor", "LowerRuntimeBuiltin", "AttachGlobalSymbol"),
        *("s_tir.LowerInitBlock", "s_tir.ConvertBlocksToOpaque", "s_tir.LowerOpaqueBlock"),
        *("tirx.BindTarget", "tirx.FlattenBuffer", "tirx.VectorizeLoop", "tirx.MakePackedAPI", "tirx.Filter"),
        "tirx.LowerIntrin",
        *("tirx.LowerTVMBuiltin", "DispatchSortScan"),
        *("RemovePurityChecking", "VMShapeLower", "ToNonDataflow", "ComputePrimValue"),
    }
)


class PassesRun:
    """Notes every pass, and leaves out applications of some.

    An application is "NAME#COUNT": TVM's name of the pass, and how often it was to run before. Those that a pass
    calls itself are part of it (constant folding compiles each constant's kernel), so that leaving one out renumbers
    none of another pass.

    Args:
        left_out: Applications that don't run; the name alone means all of a pass.

    Attributes:
        names: Of the passes that ran, with those that a pass calls itself, except by FoldConstant; the same in a row
            is noted once, as some call themselves for every function.
        applications: Those that ran.
    """

    def __init__(self, left_out: Collection[str] = ()) -> None:
        self.names: list[str] = []
        self.applications: list[str] = []
        self._left_out = frozenset(left_out)
        self._counts: Counter[str] = Counter()
        self._inside: list[str] = []

    def instrument(self) -> Any:
        """For a `tvm.transform.PassContext`."""
        import tvm

        run = self

        @tvm.ir.instrument.pass_instrument
        class Noting:
            def should_run(self, _: Any, info: Any) -> bool:
                return run._wanted(str(info.name))

            def run_before_pass(self, _: Any, info: Any) -> None:
                run._began(str(info.name))

            def run_after_pass(self, _: Any, info: Any) -> None:
                run._inside.pop()

        return Noting()

    def check(self) -> None:
        """Refuse what was to be left out and was never to run.

        Raises:
            ConfigError: naming it, and what is near.
        """
        known = [f"{name}#{count}" for name, most in self._counts.items() for count in range(most)]
        for name in sorted(self._left_out - {*known, *self._counts}):
            hint = meant(name, [*known, *self._counts], "`applications` of build.json lists what does")
            raise ConfigError(f"left_out: '{name}' isn't part of this build{hint}")

    def _wanted(self, name: str) -> bool:
        if name in _SEQUENCES or not _SEQUENCES.issuperset(self._inside):
            return True
        application = f"{name}#{self._counts[name]}"
        self._counts[name] += 1
        if not self._left_out.isdisjoint({name, application}):
            return False
        self.applications.append(application)
        return True

    def _began(self, name: str) -> None:
        if "FoldConstant" not in self._inside and self.names[-1:] != [name]:
            self.names.append(name)
        self._inside.append(name)


def check_left_out(names: Collection[str]) -> None:
    """Refuse to leave out a pass without which models don't compile.

    Raises:
        ConfigError: naming it.
    """
    for name in names:
        if pass_of(name) in MANDATORY:
            raise ConfigError(f"left_out: models don't compile without {pass_of(name)}; take it off the list")


def pass_of(application: str) -> str:
    """The pass that is applied."""
    return application.partition("#")[0]
