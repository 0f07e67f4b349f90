"""PyTorch's operators that reach files, the network, or programs that were compiled elsewhere.

tests/frameworks/screening/test_torch_operators.py looks through all that PyTorch registers.
"""

from __future__ import annotations

import re

__all__ = ["CALLED_BY_NAME", "OF_NETWORK", "reach_of"]

_FILES = r"from_file|read_file|write_file|save|load_tensor"
_NETWORK = r"\w*c10d\w*|rpc|distributed|symm_mem|_dtensor"
CALLED_BY_NAME = re.compile(rf"\b({_FILES})\b")
"""In TorchScript's code, where an operator may be called as a method of its first operand."""

OF_NETWORK = re.compile(rf"\bops\s*\.\s*({_NETWORK})\b")
"""In TorchScript's code, the library of operators that's called."""

_OF_FILES = re.compile(rf"torch\.ops\.\w+\.({_FILES}|load)\b")
_OF_PROGRAMS = re.compile(
    r"torch\.ops\.(higher_order\.(aoti_call_delegate|executorch_call_delegate|inductor_compiled_code|call_torchbind"
    r"|invoke_leaf_function|inline_asm_elementwise|triton_kernel_wrapper_\w+)|inductor\.|_test\.)"
)
_BEYOND = (
    (_OF_FILES, "opens files"),
    (re.compile(rf"torch\.ops\.({_NETWORK})\."), "uses the network"),
    (_OF_PROGRAMS, "runs compiled code"),
)


def reach_of(target: str) -> str:
    """What an operator does beyond computing; "" where it computes.

    Args:
        target: As an exported program names it ("torch.ops.aten.relu.default").
    """
    return next((words for pattern, words in _BEYOND if pattern.match(target)), "")
