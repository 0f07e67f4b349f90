"""The configuration as pydantic models. Field descriptions become the JSON Schema's."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from conrepair.config.device_url import DEVICE_URL, device_of_url
from conrepair.config.generate import GenerateConfig
from conrepair.config.strict import AnyPath, OutputPath, Seconds, Strict
from conrepair.frameworks.formats import format_name, unknown_format
from conrepair.graph.kinds import EditKind
from conrepair.runtime.bounds import MOST_SAMPLES, MOST_SECONDS, MOST_SEED
from conrepair.runtime.path_text import fitting_name

__all__ = [
    "ArchitecturesConfig",
    "AuditConfig",
    "BackendConfig",
    "ConversionConfig",
    "DatasetConfig",
    "InputConfig",
    "LibrariesConfig",
    "LimitsConfig",
    "ModelConfig",
    "OnnxRuntimeConfig",
    "RecipeConfig",
    "RpcDeviceConfig",
    "StagesConfig",
    "SuspiciousnessConfig",
    "SyntheticConfig",
    "ToleranceConfig",
    "TvmConfig",
]

_DISABLED_PREFIX = "noop_"
_STORE = "store"
_LOCAL_DEVICE = "local"
_TARGET_IN_LABEL = 48  # bytes: a target may have as many attributes as it likes
_NAME_LETTERS = 100  # files and folders are named after models, audits and backends
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=_NAME_LETTERS)]
_Pixels = Annotated[int, Field(ge=1, le=16384)]  # a picture of so many by so many has 805 MB


class RecipeConfig(Strict):
    """Preprocessing: a named recipe, with fields of it replaced."""

    base: str = Field(
        "raw",
        description="torchvision, keras:tf, keras:torch, keras:caffe, tflite, efficientnet-lite or raw.",
    )
    size: tuple[_Pixels, _Pixels] | None = Field(None, description="Height and width; default: the model's.")
    fit: Literal["stretch", "crop", "pad", "none"] | None = Field(
        None,
        description="stretch to the size, resize the shorter side and centre-crop, keep the proportions and pad with "
        "zeros, or leave as it is.",
    )
    resize_to: _Pixels | None = Field(None, description="Shorter side before the crop, in pixels.")
    crop_ratio: float | None = Field(None, description="size / shorter side before the crop.")
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"] | None = None
    resampler: Literal["pillow", "tensorflow"] | None = None
    channels: Literal["rgb", "bgr", "grey"] | None = None
    divisor: float | None = Field(None, description="First step: x / divisor.")
    mean: tuple[float, ...] | None = Field(None, description="Second step: - mean.")
    std: tuple[float, ...] | None = Field(None, description="Third step: / std.")
    layout: Literal["NCHW", "NHWC"] | None = Field(None, description="Default: the model's.")


def _recipe_from_name(value: Any) -> Any:
    return {"base": value} if isinstance(value, str) else value


Recipe = Annotated[RecipeConfig, BeforeValidator(_recipe_from_name, json_schema_input_type=str | RecipeConfig)]


class SyntheticConfig(Strict):
    """Random inputs for the source's input shapes."""

    samples: int = Field(32, ge=1, le=MOST_SAMPLES)
    seed: int = Field(0, ge=0, le=MOST_SEED)
    low: float | None = Field(
        None, description="Lower end of the range of float inputs. Default: what the files are made for, or -1."
    )
    high: float | None = Field(None, description="The upper end. Default: what the files are made for, or 1.")
    integer_high: int | None = Field(
        None,
        ge=1,
        description="Integer inputs are drawn from [0, this). Default: the size of the table they index.",
    )

    @model_validator(mode="after")
    def _range_is_one(self) -> SyntheticConfig:
        low, high = self.ends
        if low > high:
            raise ValueError(f"low ({low:g}) is above high ({high:g})")
        return self

    @property
    def ends(self) -> tuple[float, float]:
        """The range of float inputs that no file says anything about."""
        return -1.0 if self.low is None else self.low, 1.0 if self.high is None else self.high


class DatasetConfig(Strict):
    """What the models are run on: exactly one of zoo, folder, tensors, synthetic."""

    zoo: str | None = Field(None, description="Photos by name: photos, imagenet-photos, natural-photos.")
    folder: AnyPath | None = Field(None, description="A folder of photos.")
    tensors: AnyPath | None = Field(
        None, description="An .npz or .npy file, first axis samples; array names are input names."
    )
    synthetic: SyntheticConfig | None = None
    labels: AnyPath = Field(
        "auto", description="For a folder: auto, subfolders, filenames, none, or the path of a CSV."
    )
    limit: int | None = Field(None, ge=1, description="Take the first so many.")

    @model_validator(mode="after")
    def _exactly_one_origin(self) -> DatasetConfig:
        origins = [self.zoo, self.folder, self.tensors, self.synthetic]
        if sum(origin is not None for origin in origins) != 1:
            raise ValueError("give exactly one of 'zoo', 'folder', 'tensors', 'synthetic'")
        return self


class InputConfig(Strict):
    """An input of a model whose file doesn't say it (a PyTorch factory, TorchScript)."""

    name: str | None = None
    shape: tuple[Annotated[int, Field(ge=1)] | str, ...] = Field(
        ...,
        description='With the batch dimension; a string is symbolic: ["batch", 3, 224, 224].',
    )
    dtype: Literal["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool"] = "float32"
    layout: Literal["NCHW", "NHWC"] | None = None
    high: int | None = Field(None, ge=1, description="For an integer input: the size of the table it indexes.")


class ConversionConfig(Strict):
    """A conversion to try: a target format, or a pinned chain of converters."""

    to: str | None = Field(
        None,
        description="torch, keras, tensorflow, tflite or onnx. With the prefix noop_ it is disabled.",
    )
    via: tuple[str, ...] | None = Field(None, description="The converters to use, in this order.")
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Options by converter name, e.g. {'torch-onnx-script': {'opset': 17}}.",
    )

    @model_validator(mode="before")
    @classmethod
    def _translate_alias(cls, value: Any) -> Any:
        if isinstance(value, dict) and isinstance(value.get("to"), str):
            return value | {"to": format_name(value["to"])}
        return value

    @model_validator(mode="after")
    def _has_a_goal(self) -> ConversionConfig:
        if self.to is None and not self.via:
            raise ValueError("give 'to' (a format) or 'via' (converters)")
        problem = unknown_format(self.to) if self.enabled and self.to is not None else None
        if problem is not None:
            raise ValueError(problem)
        return self

    @property
    def enabled(self) -> bool:
        """False when `to` or a converter carries the noop_ prefix of the older configuration."""
        return not any(name.startswith(_DISABLED_PREFIX) for name in (self.to or "", *(self.via or ())))


def _conversion_from_format(value: Any) -> Any:
    return {"to": value} if isinstance(value, str) else value


Conversion = Annotated[
    ConversionConfig,
    BeforeValidator(_conversion_from_format, json_schema_input_type=str | ConversionConfig),
]


class ModelConfig(Strict):
    """A source model, or an existing conversion of one: exactly one of zoo, path, factory."""

    name: _Name = Field(..., description="Names the output folder.")
    zoo: str | None = Field(None, description="A packaged pretrained model by name.")
    path: AnyPath | None = Field(
        None,
        description=".onnx, .pt2, TorchScript, .keras, .h5, SavedModel folder, frozen .pb, .tflite.",
    )
    factory: str | None = Field(
        None,
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$",
        description="package.module:function, e.g. torchvision.models:mobilenet_v2.",
    )
    kwargs: dict[str, Any] = Field(default_factory=dict, description="Keyword arguments of the factory.")
    weights: AnyPath | None = Field(None, description="Weights file for the factory's model.")
    initialize: Literal["as-built", "variance-preserving"] = Field(
        "as-built",
        description="variance-preserving draws BatchNorm statistics so that random weights answer to the input.",
    )
    seed: int = Field(0, ge=0, le=MOST_SEED, description="For a factory's random weights.")
    inputs: tuple[InputConfig, ...] | None = None
    recipe: Recipe | None = Field(None, description="Preprocessing of photos; default: the model's own.")
    compare_with: str | None = Field(
        None, description="This model is a conversion, made elsewhere, of the model of that name."
    )
    conversions: tuple[Conversion, ...] = ()
    dataset: DatasetConfig | None = Field(None, description="Instead of the audit's.")
    backends: tuple[Backend, ...] | None = Field(None, min_length=1, description="Instead of the audit's.")
    batch_size: int | None = Field(None, ge=1, description="Instead of the audit's.")
    skip_analysis: bool = Field(False, description="Leave this model out.")
    trust: bool = Field(
        False,
        description="Allow code or pickles in the model file to run. Only for files you made.",
    )

    @model_validator(mode="after")
    def _exactly_one_origin(self) -> ModelConfig:
        if sum(origin is not None for origin in (self.zoo, self.path, self.factory)) != 1:
            raise ValueError("give exactly one of 'zoo', 'path', 'factory'")
        return self


class ArchitecturesConfig(Strict):
    """Architectures of a library, with random weights: each is audited by itself, one after the other."""

    family: Literal["torchvision", "keras"] = Field(
        ..., description="torchvision.models' classifiers, or keras.applications."
    )
    names: Literal["all"] | tuple[str, ...] = Field(
        "all", description='Names or patterns, e.g. ["resnet18", "densenet*"].'
    )
    exclude: tuple[str, ...] = Field((), description="Names or patterns to leave out.")
    size: int = Field(
        64, ge=1, description="Height and width of the input; raised to what an architecture takes at least."
    )
    seed: int = Field(0, ge=0, le=MOST_SEED, description="For the random weights.")
    conversions: tuple[Conversion, ...] = Field(("onnx",), validate_default=True)
    dataset: DatasetConfig | None = Field(
        None, description="Default: 8 synthetic samples, in the range that the architecture takes."
    )


class LibrariesConfig(Strict):
    """Each model in its own framework."""

    name: Literal["libraries"] = "libraries"

    @property
    def label(self) -> str:
        """How reports call it."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """What the backend is told."""
        return {}


class OnnxRuntimeConfig(Strict):
    """ONNX models as deployed, in ONNX Runtime."""

    name: Literal["onnxruntime"]
    optimization: Literal["disabled", "basic", "extended", "all"] = Field("all", description="Graph optimizations.")

    @property
    def label(self) -> str:
        """How reports call it."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """What the backend is told."""
        return self.model_dump(exclude={"name"})


class RpcDeviceConfig(Strict):
    """A device that TVM reaches over RPC, which has no authentication: on a trusted network, or through a tunnel."""

    name: _Name | None = Field(None, description="How reports call it. Default: its key in `devices`.")
    host: str = Field(..., min_length=1, description="Of the server, or of the tracker.")
    port: int = Field(9090, ge=1, le=65535, description="Of the server, or of the tracker.")
    key: str = Field("", pattern=r"^\S*$", description="That the server was started with.")
    tracker: bool = Field(
        False,
        description="host and port are a tracker's; any free server with the key, wherever it is, runs the model.",
    )
    target: str | None = Field(None, description="Of backends on this device that name none.")
    host_target: str | None = Field(
        None, description="For opencl and cuda: the device's processor, e.g. llvm -mtriple=aarch64-linux-gnu."
    )
    linker: AnyPath | None = Field(
        None,
        description="A cross-compiler here that links, e.g. aarch64-linux-gnu-g++. Default: with -mtriple the "
        "device's own compiler; else this machine's.",
    )
    connect_seconds: Seconds = Field(10.0, gt=0, description="For the server to answer.")
    step_seconds: Seconds = Field(120.0, gt=0, description="For the upload, for loading, for one batch (run twice).")
    session_seconds: Seconds = Field(600.0, gt=0, description="For all of a model's batches.")
    attempts: int = Field(2, ge=1, le=10, description="To connect, and sessions when the connection is lost.")

    @model_validator(mode="after")
    def _tracker_has_a_key(self) -> RpcDeviceConfig:
        if self.tracker and not self.key:
            raise ValueError("a tracker finds servers by their key: give 'key'")
        return self


def _device_from_text(value: Any) -> Any:
    if value == _LOCAL_DEVICE:
        return None
    return device_of_url(value) if isinstance(value, str) else value


class TvmConfig(Strict):
    """Models compiled by Apache TVM, for one target under one setting."""

    name: Literal["tvm"]
    label_: _Name | None = Field(
        None,
        alias="label",
        description="How reports call it. Default: tvm-TARGET-SETTING, with a pinned importer, and the device if "
        "it's not local.",
    )
    target: str = Field("llvm", description="llvm, opencl or cuda, with TVM's attributes: llvm -mcpu=native.")
    setting: Literal["O0", "O1", "O2", "O3", "tuned"] = Field("O2", description="Which passes run.")
    importer: Literal["onnx", "torch", "tflite"] | None = Field(
        None,
        description="Format that TVM imports; other models are converted first. Default: the model's own, or onnx.",
    )
    required_pass: tuple[str, ...] = Field((), description="Passes to run besides the setting's.")
    disabled_pass: tuple[str, ...] = Field((), description="Passes of the setting to leave out.")
    unfused: tuple[str, ...] = Field((), description="Operators of the imported model to leave out of fusion.")
    unscheduled: tuple[str, ...] = Field((), description="Operators whose kernels get no schedule (CPUs).")
    trials: int = Field(64, ge=1, description="For tuned: how many candidates are measured.")
    database: AnyPath | None = Field(
        None, description="For tuned: folder of an earlier tuning to start from (`tuning` of a build)."
    )
    built: AnyPath | None = Field(
        None, description="Folder of a build to take as it is, of whichever setting; nothing is compiled then."
    )
    threads: int | None = Field(None, ge=1, description="That a kernel may use, of those that TVM has. Default: all.")
    device: Annotated[
        RpcDeviceConfig | None,
        BeforeValidator(_device_from_text, json_schema_input_type=str | RpcDeviceConfig | None),
    ] = Field(None, description=f"Where it runs: local, a name of `devices`, {DEVICE_URL}.")
    optional: bool = Field(
        False, description="Whether a device that isn't there is only said, and doesn't make the run fail."
    )
    debug_enabled: bool = Field(
        False, description="Keep what each kernel computes, and find the one at fault (stage localize)."
    )
    debug_samples: int = Field(8, ge=1, description="For debug_enabled: samples to keep.")

    @model_validator(mode="before")
    @classmethod
    def _target_of_the_device(cls, value: Any) -> Any:
        device = value.get("device") if isinstance(value, dict) else None
        if isinstance(device, dict) and device.get("target") is not None:
            return {"target": device["target"]} | value
        return value

    @property
    def label(self) -> str:
        """How reports call it."""
        device = self.device
        where = "" if device is None else f"-{device.name or f'{device.host}-{device.port}'}"
        importer = "" if self.importer is None else f"-{self.importer}"
        target = re.sub(r"[^A-Za-z0-9._]+", "-", re.sub(r" -[a-z][a-z0-9_-]*=", " ", self.target)).strip("-")
        name = f"tvm-{fitting_name(target, _TARGET_IN_LABEL)}-{self.setting}{importer}{where}"
        return self.label_ or fitting_name(re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-"))

    @property
    def options(self) -> dict[str, Any]:
        """What the backend is told."""
        return self.model_dump(mode="json", exclude={"name", "label_", "optional"})


BackendConfig = LibrariesConfig | OnnxRuntimeConfig | TvmConfig


def _backend_from_name(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


_AnyBackend = Annotated[BackendConfig, Field(discriminator="name")]
Backend = Annotated[_AnyBackend, BeforeValidator(_backend_from_name, json_schema_input_type=str | _AnyBackend)]
ModelConfig.model_rebuild()


class StagesConfig(Strict):
    """Which stages run; the names are the older format's."""

    build: bool = Field(True, description="Make the models (fetch, call factories).")
    convert: bool = True
    execute: bool = True
    evaluate: bool = True
    localize: bool = Field(
        False, description="Name the layers at fault of targets that differ from their source; see `localize`."
    )
    repair: bool = Field(
        False, description="Mend targets whose layers are at fault, in their own format; see `repair`."
    )


class ToleranceConfig(Strict):
    """|a-b| <= atol + rtol*|reference| for every element, and the whole's relative L2, is `equivalent`.

    Integers and truth values are equal or not, unless `rtol` or `atol` is given.
    """

    rtol: float = Field(1e-4, ge=0)
    atol: float = Field(1e-5, ge=0)
    relative_l2: float | None = Field(
        1e-4, ge=0, description="||a-b|| / ||reference|| of an output; null: elements alone decide."
    )
    noise_margin: float = Field(
        10.0,
        ge=1,
        description="`noise` up to so many times the source's own measured rounding error.",
    )
    quantized_top1: float = Field(
        0.25,
        ge=0,
        le=1,
        description="A quantized target may differ in so large a share of top-1 answers.",
    )
    quantized_cosine: float = Field(
        0.9,
        ge=-1,
        le=1,
        description="and must keep at least this cosine with the source's outputs.",
    )

    @property
    def given(self) -> bool:
        """Whether somebody chose what elements may differ by, so that it's meant for integers too."""
        return not {"rtol", "atol"}.isdisjoint(self.model_fields_set)


class SuspiciousnessConfig(Strict):
    """Statistics that rank layers: those that differ more where the models disagree than where they agree."""

    enabled: bool = Field(False, description="Runs both models on the whole dataset once more.")
    similar_sample: int = Field(15, ge=2, description="Inputs on which the models agree, in each repetition.")
    dissimilar_sample: int = Field(15, ge=2, description="Inputs on which they disagree, in each repetition.")
    repetitions: int = Field(3, ge=1, description="How often inputs are drawn; ranks are added.")
    seed: int = Field(0, ge=0, le=MOST_SEED, description="Of the draws.")


class LocalizeConfig(Strict):
    """How layers at fault are looked for."""

    when: Literal["different", "always", "excused"] = Field(
        "different",
        description="Targets whose answers differ more than `equivalent` allows; all of them; or those alone that "
        "the budget of quantization excuses though they differ by more than eight bits usually cost, or accuses on "
        "synthetic inputs.",
    )
    samples: int = Field(8, ge=1, description="Inputs that layers are compared on.")
    batch_size: int = Field(4, ge=1, description="At once, for models that leave it open.")
    recipe_runs: int = Field(
        300, ge=1, description="Runs of a target whose photos are prepared wrongly, to find the right recipe."
    )
    recipe_seconds: Seconds = Field(60.0, gt=0, description="Time for that.")
    latent: bool = Field(
        False,
        description="Whether faults that no input shows count as others do, and are repaired. Those that belong to a "
        "rule of others do in any case.",
    )
    suspiciousness: SuspiciousnessConfig = SuspiciousnessConfig()


class RepairConfig(Strict):
    """How targets, and conversions that give none, are repaired."""

    targets: bool = Field(True, description="Mend targets whose layers are at fault.")
    conversions: bool = Field(True, description="Convert in another way where a conversion gives nothing that runs.")
    seconds: Seconds = Field(
        300.0,
        gt=0,
        le=MOST_SECONDS,
        description="For each target or conversion; no further edit, or way, is tried then.",
    )
    advice_seconds: Seconds = Field(
        60.0,
        ge=0,
        le=MOST_SECONDS,
        description="To try other ways to convert, for each target at fault; 0: they're only named.",
    )
    edits: tuple[EditKind, ...] | None = Field(
        None,
        description="Only such edits of targets: another recipe for photos, inputs or outputs exchanged, sizes of "
        "inputs, parameters, scales of quantized tensors (or a layer without), attributes, operators that reorder "
        "axes, other operators. "
        "Default: all.",
    )
    bake_recipe: bool = Field(
        False,
        description="Where photos must be prepared otherwise for a target, put that into the model as operators in "
        "front of its input, so that it's fed as before; refused with the reason where operators can't say it.",
    )
    unseen: int = Field(64, ge=1, description="Inputs behind those that layers were compared on, to verify on.")


class LimitsConfig(Strict):
    """Bounds of a run."""

    seconds: Seconds = Field(600.0, gt=0, description="For one conversion or execution.")
    workers: int = Field(2, ge=1, le=64, description="Conversions side by side (executions run alone).")
    memory_gb: float | None = Field(
        None,
        gt=0,
        description="A worker that holds more GiB is stopped, and its job fails (on Linux). Default: all together "
        "may hold what's free when the first job starts, less a reserve; else the largest is stopped.",
    )


def _repeated(names: Sequence[str]) -> list[str]:
    """Those that stand there more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def _items(value: Any, key: str) -> list[Any]:
    """What stands under a key, where it's a list of a configuration that isn't checked yet."""
    found = value.get(key) if isinstance(value, dict) else None
    return list(found) if isinstance(found, list | tuple) else []


def _with_devices(value: Any, known: dict[str, Any]) -> Any:
    """A value with the devices of its `backends` in the place of their names."""
    backends = [
        item | {"device": known[item["device"]]}
        if isinstance(item, dict) and isinstance(item.get("device"), str) and item["device"] in known
        else item
        for item in _items(value, "backends")
    ]
    return value | {"backends": backends} if backends else value


class AuditConfig(Strict):
    """A whole audit: `python3 main.py CONFIG`."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [key]} for key in ("models", "architectures", "generate")]}
    )

    schema_: str | None = Field(None, alias="$schema", description="For editors.")
    schema_version: Literal[1] = Field(1, description="Version of this format.")
    name: _Name = "audit"
    output: OutputPath = Field("generated", description="Folder of all outputs, relative to this file.")
    dataset: DatasetConfig = Field(default_factory=lambda: DatasetConfig(zoo="photos"))
    models: tuple[ModelConfig, ...] = ()
    architectures: tuple[ArchitecturesConfig, ...] = Field(
        (), description="Whole lists of architectures, after the models."
    )
    generate: GenerateConfig | None = Field(None, description="Random networks to make, after the audit.")
    keep_models: bool = Field(
        False,
        description="Keep the model files of audited architectures; else they go as soon as their rows are there.",
    )
    devices: dict[str, RpcDeviceConfig] = Field(
        default_factory=dict, description="Devices that TVM reaches over RPC, by the names that backends call them."
    )
    backends: tuple[Backend, ...] = Field((LibrariesConfig(),), min_length=1)
    stages: StagesConfig = StagesConfig()
    tolerance: ToleranceConfig = ToleranceConfig()
    localize: LocalizeConfig = LocalizeConfig()
    repair: RepairConfig = RepairConfig()
    limits: LimitsConfig = LimitsConfig()
    batch_size: int = Field(16, ge=1)
    top_k: int = Field(5, ge=1, le=1000)
    reuse: bool = Field(True, description="Take stored results whose inputs are unchanged.")

    @model_validator(mode="before")
    @classmethod
    def _devices_by_name(cls, value: Any) -> Any:
        """Put devices in the place of their names; what isn't one is left to be refused where it stands."""
        devices = value.get("devices") if isinstance(value, dict) else None
        if not isinstance(devices, dict):
            return value
        if _LOCAL_DEVICE in devices:
            raise ValueError(f"devices: '{_LOCAL_DEVICE}' is this machine; give the device another name")
        known = {name: {"name": name} | item for name, item in devices.items() if isinstance(item, dict)}
        models = [_with_devices(model, known) for model in _items(value, "models")]
        return _with_devices(value, known) | {"devices": devices | known} | ({"models": models} if models else {})

    @model_validator(mode="after")
    def _names_fit_together(self) -> AuditConfig:
        if self.name.lower() == _STORE:
            raise ValueError(f"name: '{_STORE}' is the folder of stored results; choose another name")
        if not self.models and not self.architectures and self.generate is None:
            raise ValueError("models: give at least one, or 'architectures', or 'generate'")
        if self.generate is not None and self.generate.place.lower() in {self.name.lower(), _STORE}:
            raise ValueError(
                f"generate.folder: '{self.generate.place}' is a folder of the audit; choose another name"
            )
        names = [model.name for model in self.models]
        for name in _repeated(names):
            raise ValueError(f"two models are named '{name}'; names must differ")
        for backends in (self.backends, *(model.backends or () for model in self.models)):
            for label in _repeated([backend.label for backend in backends]):
                raise ValueError(f"backends: two are called '{label}'; give each once, or a tvm one a `label`")
        sources = {model.name for model in self.models if model.compare_with is None}
        for model in self.models:
            if model.compare_with is not None and model.dataset is not None:
                raise ValueError(
                    f"models: '{model.name}' is compared with '{model.compare_with}' and so runs on its dataset; "
                    "leave 'dataset' out"
                )
            if model.compare_with is not None and model.compare_with not in sources:
                close = difflib.get_close_matches(model.compare_with, sources, n=1)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                raise ValueError(
                    f"models: '{model.name}' has compare_with '{model.compare_with}', "
                    f"which is not a source model here{hint}"
                )
        return self

    def backends_of(self, model: ModelConfig) -> tuple[BackendConfig, ...]:
        """Where a model shall run."""
        return self.backends if model.backends is None else model.backends

    def dataset_of(self, model: ModelConfig) -> DatasetConfig:
        """What a model runs on: its own dataset, its reference's, or the audit's."""
        return self._own_datasets.get(str(model.compare_with)) or model.dataset or self.dataset

    @cached_property
    def _own_datasets(self) -> dict[str, DatasetConfig]:
        return {model.name: model.dataset for model in self.models if model.dataset is not None}

    def batch_size_of(self, model: ModelConfig) -> int:
        """How many samples a model that leaves it open gets at once."""
        return self.batch_size if model.batch_size is None else model.batch_size
