"""Save a PyTorch module that a converter made."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from conrepair.formats.converters.torch_onnx import symbolic_axes
from conrepair.ground.data.tensor_spec import TensorSpec
from conrepair.ground.runtime.notes import note


def save_torch(module: Any, examples: Any, inputs: tuple[TensorSpec, ...], folder: Path) -> str:
    """Save a module as an exported program, else as TorchScript.

    A trace writes down the values of tensors that a module reads while running, which torch.export can't follow.

    Args:
        module: In evaluation mode.
        examples: A tensor for each input.
        inputs: Whose symbolic dimensions stay symbolic where the module allows it; a note names those that don't. A
            batch that can't becomes 1.
        folder: Receives the file.

    Returns:
        The file's name.
    """
    import torch

    try:
        program = _exported(module, examples, inputs)
        _forget_places(program)
        torch.export.save(program, folder / "model.pt2")
    # torch.export raises a dozen types; whichever, the next way is tried, and its failure is the result.
    except Exception as error:  # noqa: BLE001
        first_line = (str(error).strip().splitlines() or [""])[0]
        note(f"torch.export fails ({type(error).__name__}: {first_line}), so the network was traced (TorchScript)")
        (folder / "model.pt2").unlink(missing_ok=True)
        with torch.inference_mode():
            torch.jit.trace(module, examples, check_trace=False).save(str(folder / "model.pt"))
        return "model.pt"
    return "model.pt2"


def _forget_places(program: Any) -> None:
    """Leave out which lines of whose files the operators come from: of a converter's, on this machine."""
    for part in program.graph_module.modules():
        for node in part.graph.nodes if hasattr(part, "graph") else ():
            node.meta.pop("stack_trace", None)


def _exported(module: Any, examples: Any, inputs: tuple[TensorSpec, ...]) -> Any:
    import torch

    shapes = [dict.fromkeys(symbolic_axes(spec), torch.export.Dim.AUTO) for spec in inputs]
    program = torch.export.export(module, examples, dynamic_shapes=tuple(shapes))
    fixed = [_fixed_axes(program, name, axes) for name, axes in zip(_names(program), shapes, strict=False)]
    if not any(fixed):
        return program
    axes = [f"{spec.name}: {list(item)}" for spec, item in zip(inputs, fixed, strict=False) if item]
    note(f"torch.export: the network fixes the sizes of these axes: {', '.join(axes)}")
    if not any(0 in item for item in fixed):
        return program
    smallest = tuple(example[:1] if 0 in axes else example for example, axes in zip(examples, shapes, strict=True))
    others = tuple({axis: hint for axis, hint in axes.items() if axis} for axes in shapes)
    return torch.export.export(module, smallest, dynamic_shapes=others)


def _names(program: Any) -> list[str]:
    return [str(name) for name in program.graph_signature.user_inputs]


def _fixed_axes(program: Any, name: str, axes: Iterable[int]) -> list[int]:
    """Those axes of an input that are numbers in the program, maybe still in the guise of symbols."""
    from torch.fx.experimental.symbolic_shapes import is_concrete_int

    shape = next(node.meta["val"].shape for node in program.graph.nodes if node.name == name)
    return [axis for axis in axes if is_concrete_int(shape[axis])]
