"""PyTorch's operators that reach files, the network, or programs that were compiled elsewhere.

tests/frameworks/screening/test_torch_operators.py looks through all that PyTorch registers.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any

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
_OPERATOR = re.compile(r"torch\.ops\.\w+\.\w+(\.\w+)?")
_OTHER = re.compile(
    r"_operator\.(eq|ne|le|ge|lt|gt|neg|pos|mul|add|sub|floordiv|mod|pow|truediv|and_|or_|lshift|rshift|getitem)"
    r"|math\.(trunc|ceil|floor)|torch\._?sym_\w+|#\w+:[\w.]+"
    r"|torch\._functorch\.predispatch\._(add_batch_dim|remove_batch_dim|vmap_(in|de)crement_nesting)"
)
"""Functions of sizes, and others that exported programs call and that are no operators."""

_BEYOND = (
    (_OF_FILES, "opens files"),
    (re.compile(rf"torch\.ops\.({_NETWORK})\."), "uses the network"),
    (_OF_PROGRAMS, "runs compiled code"),
)


def is_operator(target: str) -> bool:
    """Whether an exported program's target is an operator, and not something else that PyTorch finds by that name.

    Args:
        target: As an exported program names it ("torch.ops.aten.relu.default"). PyTorch says of one that it doesn't
            find, as of a library that isn't imported, that it's missing.
    """
    if not _OPERATOR.fullmatch(target):
        return _OTHER.fullmatch(target) is not None
    torch: Any = importlib.import_module("torch")
    try:
        found = functools.reduce(getattr, target.split(".")[1:], torch)
    except AttributeError:
        return True
    return isinstance(found, torch._ops.OpOverload | torch._ops.HigherOrderOperator)


def reach_of(target: str) -> str:
    """What an operator does beyond computing; "" where it computes.

    Args:
        target: As an exported program names it ("torch.ops.aten.relu.default").
    """
    return next((words for pattern, words in _BEYOND if pattern.match(target)), "")
