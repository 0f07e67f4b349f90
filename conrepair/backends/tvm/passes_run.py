"""Which passes TVM ran, in order."""

from __future__ import annotations

from typing import Any

__all__ = ["PassNames"]


class PassNames:
    """Notes the name of every pass.

    Attributes:
        names: So far, without those that a pass calls itself (constant folding compiles each constant's kernel);
            the same pass in a row is noted once, as some call themselves for every function.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._inside: list[str] = []

    def instrument(self) -> Any:
        """For a `tvm.transform.PassContext`."""
        import tvm

        noted = self

        @tvm.ir.instrument.pass_instrument
        class Noting:
            def run_before_pass(self, _: Any, info: Any) -> None:
                name = str(info.name)
                if "FoldConstant" not in noted._inside and noted.names[-1:] != [name]:
                    noted.names.append(name)
                noted._inside.append(name)

            def run_after_pass(self, _: Any, info: Any) -> None:
                noted._inside.pop()

        return Noting()
