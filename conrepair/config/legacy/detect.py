"""Tell the older form of a configuration from ours, by its keys."""

from __future__ import annotations

from typing import Any

__all__ = ["is_legacy"]

# Keys that our form doesn't have, and that aren't a slip of the pen away from one it has.
_TOP = frozenset(
    {
        "conv_analysis_enabled",
        "debug_enabled",
        "devices",
        "disabled_pass",
        "enable_mutations",
        "initial_analysis_enabled",
        "layer_analysis_enabled",
        "model_repair_config",
        "model_repair_enabled",
        "opt_alias",
        "opt_level",
        "preprocessing_enabled",
        "required_pass",
        "runs_no",
        "selected_dataset",
    }
)
_MODEL = frozenset({"build_dlls", "dll_libraries", "execute_dlls", "exec_out_relative"})


def is_legacy(value: Any) -> bool:
    """Whether a JSON value is a configuration of the older form.

    Args:
        value: As it was read; may be anything.
    """
    if not isinstance(value, dict) or "schema_version" in value:
        return False
    if _TOP & value.keys():
        return True
    models = value.get("models")
    return isinstance(models, list) and any(isinstance(model, dict) and _MODEL & model.keys() for model in models)
