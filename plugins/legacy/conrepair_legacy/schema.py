"""The older configuration as typed models: what its tool accepted, unknown keys included."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

Shape = tuple[int | str | None, ...]


class _Open(BaseModel):
    """Accepts other keys, too: those that the older tool never read, as the account says, and unknown ones."""

    model_config = ConfigDict(extra="allow", frozen=True, protected_namespaces=())


class LegacyRepairModel(_Open):
    """One of the two models of a repair."""

    name: str | None = None
    model_name: str | None = None
    image_dimension: tuple[int, int] | None = None
    input: Shape | None = None
    input_name: str | None = None
    output: Shape | None = None
    output_name: str | None = None
    library: str | None = None
    preprocessing_enabled: bool | None = None
    debug_enabled: bool | None = None
    dtype: str | None = None
    transpose_order: tuple[int, ...] | None = None


class LegacyRepairSettings(_Open):
    """How a repair goes about it."""

    enable_layer_analysis: bool | None = None
    enable_model_repair: bool | None = None
    enable_dim_fix: bool | None = None
    enable_transpose: bool | None = None
    align_dimension: bool | None = None
    clear_multiple_outputs: bool | None = None
    continue_repair_when_image_fixed: bool | None = None
    similar_sample: int | None = None
    dissimilar_sample: int | None = None
    time_limit: float | None = None
    no_of_layer_iterations: int | None = None


class LegacyRepair(_Open):
    """A source, its conversion, and what shall be repaired."""

    source_rel_path: str | None = None
    target_rel_path: str | None = None
    out_rel_path: str | None = None
    source_model_data: LegacyRepairModel = LegacyRepairModel()
    target_model_data: LegacyRepairModel = LegacyRepairModel()
    settings: LegacyRepairSettings = LegacyRepairSettings()


class LegacyLibrary(_Open):
    """A model of another library, or a conversion."""

    library: str
    load: str | None = None
    opset: int | None = None
    dependency: str | None = None
    model: str | None = None
    input_name: str | None = None
    output_name: str | None = None
    scalar_input: bool | None = None
    input: Shape | None = None
    output: Shape | None = None
    image_dimension: tuple[int, int] | None = None
    execution_type: str | None = None
    weights_url: str | None = None
    weights_file: str | None = None
    format: str | None = None
    dtype: str | None = None


class LegacyLayers(_Open):
    """Shapes of a model."""

    image_dimension: tuple[int, int] | None = None
    input: Shape | None = None
    output: Shape | None = None


class LegacyPaths(_Open):
    """Folders that the older tool wrote to."""

    models_out_relative: str | None = None
    dll_models_out_relative: str | None = None
    exec_out_relative: str | None = None
    dll_exec_out_relative: str | None = None
    evaluation_out_relative: str | None = None
    export_dll_models_out_relative: str | None = None


class LegacyModel(_Open):
    """A model, and its conversions."""

    name: str
    alias: str | None = None
    skip_analysis: bool | None = None
    build: bool | None = None
    execute: bool | None = None
    build_dlls: bool | None = None
    execute_dlls: bool | None = None
    evaluate: bool | None = None
    url: str | None = None
    model: str | None = None
    type: str | None = None
    library: str | None = None
    input_name: str | None = None
    output_name: str | None = None
    layers: LegacyLayers = LegacyLayers()
    dtype: str | None = None
    opset: int | None = None
    paths: LegacyPaths = LegacyPaths()
    dll_libraries: tuple[LegacyLibrary, ...] = ()
    export_dlls: bool | None = None
    export_dll_libraries: tuple[LegacyLibrary, ...] = ()


class LegacyDevice(_Open):
    """Where TVM ran models."""

    host_type: str | None = None
    target: str | None = None
    target_framework: str | None = None
    host: str | None = None
    address: str | None = None
    port: int | None = None


class LegacyDevices(_Open):
    """The devices by name, and which is meant."""

    __pydantic_extra__: dict[str, LegacyDevice]
    id: int | None = None
    selected: str | None = None


class LegacyDataset(_Open):
    """A folder of photos."""

    title: str | None = None
    dataset_path_relative: str | None = None


class LegacyConfig(_Open):
    """A whole configuration."""

    preprocessing_enabled: bool | None = None
    debug_enabled: bool | None = None
    backend: str | None = None
    runs_no: int | None = None
    model_repair_config: LegacyRepair | None = None
    models: tuple[LegacyModel, ...] = ()
    devices: LegacyDevices = LegacyDevices()
    datasets: tuple[LegacyDataset, ...] = ()
    selected_dataset: int | None = None
    opt_level: int | None = None
    required_pass: Any = None
    disabled_pass: Any = None
    quantize: bool | None = None
    enable_mutations: bool | None = None
    conv_analysis_enabled: bool | None = None
