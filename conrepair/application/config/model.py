"""The configuration as pydantic models. Field descriptions become the JSON Schema's."""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from conrepair.application.config.device_url import DEVICE_URL, device_of_url
from conrepair.application.config.parts import ENGINES, PARTS, Engine, Part, with_parts
from conrepair.application.config.rules import LOCAL_DEVICE, broken_rules
from conrepair.application.config.strict import (
    AnyPath,
    Bool,
    Float,
    Int,
    OutputPath,
    Seconds,
    Strict,
    refusal_at,
    this_one,
)
from conrepair.application.verbs.option import Options
from conrepair.application.verbs.options import Compiled, Localize, Repair
from conrepair.formats.backends.all_backends import BACKENDS
from conrepair.formats.models.formats import format_name, unknown_format
from conrepair.ground.graph.kinds import EditKind
from conrepair.ground.runtime.bounds import MOST_SAMPLES, MOST_SECONDS, MOST_SEED
from conrepair.ground.runtime.path_text import fitting_name
from conrepair.ground.runtime.words import meant
from conrepair.verdicts.evaluate.tolerance import WITHOUT_BUDGET, ArithmeticName, Tolerance

_DISABLED_PREFIX = "noop_"
_TARGET_IN_LABEL = 48  # bytes: a target may have as many attributes as it likes
_NAME_LETTERS = 100  # files and folders are named after models, audits and backends
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=_NAME_LETTERS)]
_Accuracy = Annotated[str, Field(pattern=r"^top[1-9][0-9]{0,3}$")]
_AT = "@"
_VERSION = r"[A-Za-z0-9][A-Za-z0-9.+!_-]{0,40}"
_Release = Annotated[
    Annotated[str, Field(pattern=f"^{_VERSION}$")] | None,
    Field(
        None,
        description="Another release of the library, by its version, in a separate environment. Default: the "
        "installed one.",
    ),
]
_Pixels = Annotated[Int, Field(ge=1, le=16384)]  # a picture of so many by so many has 805 MB


def _as_of(verb: type[Options], name: str, **limits: Any) -> Any:
    """A field that means what an option of a verb does: with its default and its words."""
    return Field(verb.default(name), description=verb.meaning(name, flags=False), **limits)


class RecipeConfig(Strict):
    """Preprocessing: a named recipe, with fields of it replaced."""

    base: str = Field(
        "raw", description="torchvision, keras:tf, keras:torch, keras:caffe, tflite, efficientnet-lite or raw."
    )
    size: tuple[_Pixels, _Pixels] | None = Field(None, description="Height and width; default: the model's.")
    fit: Literal["stretch", "crop", "pad", "none"] | None = Field(
        None,
        description="stretch to the size, resize the shorter side and centre-crop, keep the proportions and pad with "
        "zeros, or leave as it is.",
    )
    resize_to: _Pixels | None = Field(None, description="Shorter side before the crop, in pixels.")
    crop_ratio: Float | None = Field(None, description="size / shorter side before the crop.")
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"] | None = None
    resampler: Literal["pillow", "tensorflow"] | None = None
    channels: Literal["rgb", "bgr", "grey"] | None = None
    divisor: Float | None = Field(None, description="First step: x / divisor.")
    mean: tuple[Float, ...] | None = Field(None, description="Second step: - mean.")
    std: tuple[Float, ...] | None = Field(None, description="Third step: / std.")
    layout: Literal["NCHW", "NHWC"] | None = Field(None, description="Default: the model's.")


def _recipe_from_name(value: Any) -> Any:
    return {"base": value} if isinstance(value, str) else value


Recipe = Annotated[RecipeConfig, BeforeValidator(_recipe_from_name, json_schema_input_type=str | RecipeConfig)]


class SyntheticConfig(Strict):
    """Random inputs for the source's input shapes."""

    samples: Int = Field(32, ge=1, le=MOST_SAMPLES)
    seed: Int = Field(0, ge=0, le=MOST_SEED)
    low: Float | None = _as_of(Localize, "low")
    high: Float | None = _as_of(Localize, "high")
    integer_high: Int | None = Field(
        None, ge=1, description="Integer inputs are drawn from [0, this). Default: the size of the table they index."
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

    model_config = ConfigDict(json_schema_extra={"oneOf": this_one("zoo", "folder", "tensors", "synthetic")})

    zoo: str | None = Field(None, description="Photos by name: photos, imagenet-photos, natural-photos.")
    folder: AnyPath | None = Field(None, description="A folder of photos.")
    tensors: AnyPath | None = Field(
        None, description="An .npz or .npy file, first axis samples; array names are input names."
    )
    synthetic: SyntheticConfig | None = None
    labels: AnyPath = _as_of(Localize, "labels")
    classes: AnyPath | tuple[str, ...] | None = _as_of(Localize, "classes")
    limit: Int | None = Field(None, ge=1, description="Take so many: of a folder spread over it, else the first.")

    @model_validator(mode="after")
    def _exactly_one_origin(self) -> DatasetConfig:
        origins = [self.zoo, self.folder, self.tensors, self.synthetic]
        if sum(origin is not None for origin in origins) != 1:
            raise ValueError("give exactly one of 'zoo', 'folder', 'tensors', 'synthetic'")
        return self


class InputConfig(Strict):
    """An input of a model whose file doesn't say it (a PyTorch factory, TorchScript)."""

    name: str | None = None
    shape: tuple[Annotated[Int, Field(ge=1)] | str, ...] = Field(
        ..., description='With the batch dimension; a string is symbolic: ["batch", 3, 224, 224].'
    )
    dtype: Literal["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "bool"] = "float32"
    layout: Literal["NCHW", "NHWC"] | None = None
    high: Int | None = Field(None, ge=1, description="For an integer input: the size of the table it indexes.")


class ConversionConfig(Strict):
    """A conversion to try: a target format, or a pinned chain of converters."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["to"], "properties": {"to": {"type": "string"}}},
                {"required": ["via"], "properties": {"via": {"type": "array", "minItems": 1}}},
            ]
        }
    )

    to: str | None = Field(
        None, description="torch, keras, tensorflow, tflite or onnx. With the prefix noop_ it is disabled."
    )
    via: tuple[str, ...] | None = Field(None, description="The converters to use, in this order.")
    options: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Options by converter name, e.g. {'torch-onnx-script': {'opset': 17}}."
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
    ConversionConfig, BeforeValidator(_conversion_from_format, json_schema_input_type=str | ConversionConfig)
]


class ModelConfig(Strict):
    """A source model, or an existing conversion of one: exactly one of zoo, path, factory."""

    model_config = ConfigDict(json_schema_extra={"oneOf": this_one("zoo", "path", "factory")})

    name: _Name = Field(..., description="Names the output folder.")
    zoo: str | None = Field(None, description="A packaged pretrained model by name.")
    path: AnyPath | None = Field(
        None, description=".onnx, .pt2, TorchScript, .keras, .h5, SavedModel folder, frozen .pb, .tflite."
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
        description="variance-preserving draws BatchNorm statistics so that random weights react to the input.",
    )
    seed: Int = Field(0, ge=0, le=MOST_SEED, description="For a factory's random weights.")
    inputs: tuple[InputConfig, ...] | None = None
    recipe: Recipe | None = Field(None, description="Preprocessing of photos; default: the model's own.")
    compare_with: str | None = Field(
        None, description="This model is a conversion, made elsewhere, of the model of that name."
    )
    conversions: tuple[Conversion, ...] = ()
    dataset: DatasetConfig | None = Field(None, description="Instead of the audit's.")
    backends: Backends | None = Field(None, description="Instead of the audit's.")
    batch_size: Int | None = Field(None, ge=1, description="Instead of the audit's.")
    skip_analysis: Bool = Field(False, description="Leave this model out.")
    trust: Bool = Field(False, description="Allow code or pickles in the model file to run. Only for files you made.")

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
    size: Int = Field(
        64, ge=1, description="Height and width of the input; raised to what an architecture takes at least."
    )
    seed: Int = Field(0, ge=0, le=MOST_SEED, description="For the random weights.")
    conversions: tuple[Conversion, ...] = Field(("onnx",), validate_default=True)
    dataset: DatasetConfig | None = Field(
        None, description="Default: 8 synthetic samples, in the range that the architecture takes."
    )


def _in_release(name: str, release: str | None) -> str:
    """What's called so in another release of its library, if one is given."""
    return name if release is None else f"{name}{_AT}{release}"


class _Computing(Strict):
    """A backend whose arithmetic may be declared."""

    arithmetic: ArithmeticName | Literal[""] = Field(
        "", description='Arithmetic that it computes in. Default, "": as far as it tells itself.'
    )


class _Labelled(_Computing):
    """A backend that reports may call as somebody likes."""

    name: str
    label_: _Name | None = Field(None, alias="label", description="How reports call it. Default: its name.")
    optional: Bool = Field(
        False,
        description="Whether it's only said, and doesn't make the run fail, that its device or library isn't there, "
        "or that it doesn't take a model.",
    )

    @property
    def label(self) -> str:
        """How reports call it."""
        return self.label_ or _in_release(self.name, getattr(self, "release", None))

    @property
    def options(self) -> dict[str, Any]:
        """What the backend is told."""
        return self.model_dump(mode="json", exclude={"name", "label_", "optional", "arithmetic"})


class LibrariesConfig(Strict):
    """Each model in its own framework."""

    name: Literal["libraries"]

    @property
    def label(self) -> str:
        """How reports call it."""
        return self.name

    @property
    def options(self) -> dict[str, Any]:
        """What the backend is told."""
        return {}


class _OnDevice(_Labelled):
    """A backend that runs models on the processor, or on a GPU."""

    device: Literal["cpu", "cuda"] = Field("cpu", description="Where it runs: the processor, or a GPU of NVIDIA's.")
    tf32: Bool = Field(
        True, description="On cuda: let products of float32 be computed in TF32, as the library does by itself."
    )

    def _with_device(self, setting: str) -> str:
        tf32 = "" if self.tf32 else " without TF32"
        return setting if self.device == "cpu" else f"{setting}, {self.device}{tf32}"


class OnnxRuntimeConfig(_OnDevice):
    """ONNX models as deployed, in ONNX Runtime."""

    name: Literal["onnxruntime"]
    optimization: Literal["disabled", "basic", "extended", "all"] = Field("all", description="Graph optimizations.")
    disabled_optimizers: tuple[str, ...] = Field((), description="Optimizers of that level to leave out.")
    release: _Release

    @property
    def setting(self) -> str:
        """Of the optimization, for reports."""
        off = filter(None, [", ".join(self.disabled_optimizers)])
        return self._with_device(", without ".join([self.optimization, *off]))


class TfliteConfig(_Labelled):
    """Models in the LiteRT interpreter; those of other formats are converted to TFLite first."""

    name: Literal["tflite"]
    kernels: Literal["delegate", "builtin", "reference"] = Field(
        "delegate", description="XNNPACK's where it has some, TFLite's own, or its plain loops."
    )

    @property
    def setting(self) -> str:
        """Of the optimization, for reports."""
        return self.kernels


class InductorConfig(_OnDevice):
    """Models compiled by torch.compile; those of other formats are converted to PyTorch first."""

    name: Literal["inductor"]
    backend: Literal["eager", "aot_eager", "aot_eager_decomp_partition", "inductor"] = Field(
        "inductor", description="How far it compiles, by torch.compile's names."
    )
    inductor_options: dict[str, Bool | Int | str] = Field(
        default_factory=dict, description="Of torch._inductor.config: those that change results on a CPU."
    )
    disabled_passes: tuple[str, ...] = Field((), description="Passes on the graph to leave out.")
    disabled_decompositions: tuple[str, ...] = Field((), description="Operators (aten.gelu.default) that stay whole.")
    disabled_lowerings: tuple[str, ...] = Field(
        (), description="Operators (aten.erf.default) that PyTorch's own kernels compute."
    )

    @property
    def setting(self) -> str:
        """Of the optimization, for reports."""
        return self._with_device(self.backend)


class XlaConfig(_Labelled):
    """Models compiled whole by TensorFlow's XLA; those of other formats are converted to Keras first."""

    name: Literal["xla"]
    optimization_level: Annotated[Int, Field(ge=0, le=3)] | None = Field(
        None, description="Of code generation. Default: XLA's, 3."
    )
    max_isa: Literal["SSE4_2", "AVX", "AVX2", "AVX512"] | None = Field(
        None, description="Instructions that it may use, on x86. Default: the processor's."
    )
    fast_math: Bool = Field(False, description="Let it reorder and approximate, as if there were no NaN or infinity.")
    disabled_hlo_passes: tuple[str, ...] = Field((), description="Passes to leave out, by XLA's names.")

    @property
    def setting(self) -> str:
        """Of the optimization, for reports."""
        level = 3 if self.optimization_level is None else self.optimization_level
        fast = ", fast math" if self.fast_math else ""
        return ", without ".join([f"O{level}{fast}", *filter(None, [", ".join(self.disabled_hlo_passes)])])


class RpcDeviceConfig(Strict):
    """A device that TVM reaches over RPC, which has no authentication: on a trusted network, or through a tunnel."""

    name: _Name | None = Field(None, description="How reports call it. Default: its key in `devices`.")
    host: str = Field(..., min_length=1, description="Of the server, or of the tracker.")
    port: Int = Field(9090, ge=1, le=65535, description="Of the server, or of the tracker.")
    key: str = Field("", pattern=r"^\S*$", description="That the server was started with.")
    tracker: Bool = Field(
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
    connect_seconds: Seconds = Field(10.0, gt=0, description="Time for the server to answer.")
    step_seconds: Seconds = Field(120.0, gt=0, description="For the upload, for loading, for one batch (run twice).")
    session_seconds: Seconds = Field(600.0, gt=0, description="For all of a model's batches.")
    attempts: Int = Field(2, ge=1, le=10, description="To connect, and sessions when the connection is lost.")

    @model_validator(mode="after")
    def _tracker_has_a_key(self) -> RpcDeviceConfig:
        if self.tracker and not self.key:
            raise ValueError("a tracker finds servers by their key: give 'key'")
        return self


def _device_from_text(value: Any) -> Any:
    if value == LOCAL_DEVICE:
        return None
    return device_of_url(value) if isinstance(value, str) else value


class TvmConfig(_Labelled):
    """Models compiled by Apache TVM, for one target under one setting."""

    name: Literal["tvm"]
    label_: _Name | None = Field(
        None,
        alias="label",
        description="How reports call it. Default: tvm-TARGET-SETTING, with a pinned importer, and the device if "
        "it's not local.",
    )
    target: str = _as_of(Compiled, "target")
    setting: Literal["O0", "O1", "O2", "O3", "tuned"] = _as_of(Compiled, "setting")
    importer: Literal["onnx", "torch", "tflite"] | None = _as_of(Compiled, "importer")
    required_pass: tuple[str, ...] = Field((), description="Passes to run besides the setting's.")
    disabled_pass: tuple[str, ...] = Field((), description="Passes of the setting to leave out.")
    left_out: tuple[str, ...] = Field(
        (), description="Passes that don't run, or single applications of them (FuseOps#0), as build.json names them."
    )
    fusion_depth: Int | None = Field(None, ge=1, description="Operators that a kernel may be fused of. Default: 256.")
    vectorize: Bool = Field(True, description="Whether kernels compute in vectors where schedules say so.")
    unfused: tuple[str, ...] = Field((), description="Operators of the imported model to leave out of fusion.")
    unscheduled: tuple[str, ...] = Field((), description="Operators whose kernels get no schedule (CPUs).")
    stable: tuple[str, ...] = Field((), description="Operators of an ONNX model to compute in a stable form.")
    float64: tuple[str, ...] = Field((), description="Operators of an ONNX model to compute in float64.")
    trials: Int = _as_of(Compiled, "trials", ge=1)
    database: AnyPath | None = _as_of(Compiled, "database")
    built: AnyPath | None = Field(
        None, description="Folder of a build to take as it is, of whichever setting; nothing is compiled then."
    )
    threads: Int | None = _as_of(Compiled, "threads", ge=1)
    fast_math: Bool = Field(
        True, description="For cuda: approximate functions, and take tiny numbers for zero. False needs nvcc."
    )
    release: _Release
    device: Annotated[
        RpcDeviceConfig | None,
        BeforeValidator(_device_from_text, json_schema_input_type=str | RpcDeviceConfig | None),
    ] = Field(None, description=f"Where it runs: local, a name of `devices`, {DEVICE_URL}.")
    debug_enabled: Bool = Field(
        False, description="Keep what each kernel computes, as files; layers are compared without it, too."
    )
    debug_samples: Int = Field(8, ge=1, description="For debug_enabled: samples to keep.")

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
        return self.label_ or _in_release(
            fitting_name(re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-")), self.release
        )


def _of_no_own_name(schema: dict[str, Any]) -> None:
    schema["properties"]["name"]["not"] = {"enum": [*BACKENDS.own]}


class PluginConfig(_Labelled):
    """A backend of a plug-in (docs/plugins.md); its options stand beside its name."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_of_no_own_name)

    @field_validator("name")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in BACKENDS:
            hint = meant(name, BACKENDS, f"known: {', '.join(BACKENDS)}")
            raise ValueError(f"unknown backend '{name}'{hint}")
        return name

    @property
    def options(self) -> dict[str, Any]:
        """What the backend is told."""
        return dict(self.model_extra or {})

    @property
    def setting(self) -> str:
        """Of the optimization, for reports."""
        return ", ".join(f"{name}={value}" for name, value in self.options.items())


_OwnConfig = LibrariesConfig | OnnxRuntimeConfig | TfliteConfig | InductorConfig | XlaConfig | TvmConfig
BackendConfig = _OwnConfig | PluginConfig


def _backend_from_name(value: Any) -> Any:
    """What stands for a name: "onnxruntime@1.20.1" for an object with `name` and `release`; else the value itself."""
    if not isinstance(value, str):
        return value
    name, is_release, release = value.partition(_AT)
    return {"name": name, "release": release} if is_release else {"name": name}


def every_backend(value: Any = "all") -> Any:
    """What stands for "all": each backend that's known, with its optimizations and without; else the value itself.

    What isn't installed, or doesn't take a model, is said, and is no failure.
    """
    if value != "all":
        return value
    return [
        {"name": name}
        if name == "libraries"
        else {"name": name, **options, "optional": True, **({"label": f"{name}-{called}"} if called else {})}
        for name in BACKENDS
        for called, options in BACKENDS[name].settings.items()
    ]


def _whose(value: Any) -> str:
    """Whether a backend is ours or a plug-in's, by its name."""
    name = value.get("name") if isinstance(value, dict) else getattr(value, "name", None)
    return "plugin" if isinstance(name, str) and name not in BACKENDS.own else "own"


_Own = Annotated[_OwnConfig, Field(discriminator="name")]
_AnyBackend = Annotated[Annotated[_Own, Tag("own")] | Annotated[PluginConfig, Tag("plugin")], Discriminator(_whose)]
_BackendName = (
    Literal["libraries", "onnxruntime", "tflite", "inductor", "xla", "tvm"]
    | Annotated[str, Field(pattern=f"^(onnxruntime|tvm){_AT}{_VERSION}$")]
    | Annotated[_Name, Field(description="A backend of a plug-in.")]
)
BACKEND_CONFIGS: dict[str, type[BackendConfig]] = {
    get_args(kind.model_fields["name"].annotation)[0]: kind for kind in get_args(_OwnConfig)
}
"""By name."""

Backend = Annotated[
    _AnyBackend, BeforeValidator(_backend_from_name, json_schema_input_type=_BackendName | _AnyBackend)
]
_Several = Annotated[tuple[Backend, ...], Field(min_length=1)]
Backends = Annotated[_Several, BeforeValidator(every_backend, json_schema_input_type=_Several | Literal["all"])]
ModelConfig.model_rebuild()


class StagesConfig(Strict):
    """Which stages run; the names are the older format's."""

    build: Bool = Field(True, description="Make the models (fetch, call factories).")
    convert: Bool = True
    execute: Bool = True
    evaluate: Bool = True
    localize: Bool = Field(
        False, description="Name the faulty layers of converted models that differ; see `localize`."
    )
    repair: Bool = Field(
        False, description="Repair converted models with faulty layers, in their own format; see `repair`."
    )


class OutputToleranceConfig(Strict):
    """Of some outputs: where `rtol` or `atol` is given, elements decide alone unless `relative_l2` is, too."""

    rtol: Float = Field(Tolerance.rtol, ge=0)
    atol: Float = Field(Tolerance.atol, ge=0)
    relative_l2: Float | None = Field(None, ge=0, description="||a-b|| / ||reference|| of an output.")


class ToleranceConfig(OutputToleranceConfig):
    """|a-b| <= atol + rtol*|reference| for every element, and the whole's relative L2, is `equivalent`.

    Integers and truth values are equal or not, unless `rtol` or `atol` is given.
    """

    relative_l2: Float | None = Field(
        1e-4, ge=0, description="||a-b|| / ||reference|| of an output; null: elements alone decide."
    )
    noise_margin: Float = _as_of(Localize, "margin", ge=1)
    quantized_top1: Float = Field(
        0.25, ge=0, le=1, description="Share of the predictions (top-1) that may differ in a quantized model."
    )
    quantized_cosine: Float = Field(
        0.9, ge=-1, le=1, description="Least cosine between the outputs of a quantized model and its original."
    )
    strict_signature: Bool = _as_of(Localize, "strict_signature")
    arithmetic: ArithmeticName | Literal[""] = _as_of(Localize, "arithmetic")
    by_output: dict[str, OutputToleranceConfig] = Field(
        default_factory=dict,
        description="Other tolerances for some outputs, by the name of an output of the original, or by a type that "
        "converted models compute in or return (float16). What isn't given there is as above.",
    )

    max_drop: dict[_Accuracy, Annotated[Float, Field(ge=0, le=1)]] = Field(
        default_factory=dict,
        description="Share of the labelled samples by which accuracy may drop, by top1, top5 and the like: a model "
        "that loses more is faulty. It replaces limits of quantized models that aren't given.",
        json_schema_extra={"additionalProperties": False},
    )

    @property
    def told(self) -> dict[str, Any]:
        """The same as fields of a `Tolerance`."""
        values = self.model_dump(exclude={"max_drop"})
        if self.max_drop:
            values |= {name: value for name, value in WITHOUT_BUDGET.items() if name not in self.model_fields_set}
        given = not {"rtol", "atol"}.isdisjoint(self.model_fields_set)
        by_output = {name: item.model_dump(exclude_unset=True) for name, item in self.by_output.items()}
        return values | {"given": given, "by_output": by_output}


class MetricsConfig(Strict):
    """Your own metrics: functions of the source's and the target's output (arrays) that give a number."""

    functions: tuple[str, ...] = Field(
        (),
        description="FILE.py:FUNCTION (relative to this file) or MODULE:FUNCTION, with `,min=X`, `,max=X` (it "
        "decides, too) and `,output=NAME` (it's of that alone). They need `trust`.",
    )
    trust: Bool = Field(False, description="Run the functions: programs, which aren't confined.")


class LocalizeConfig(Strict):
    """How layers at fault are looked for."""

    gone = MappingProxyType({"suspiciousness": "localization names the layers at fault without it; leave it out"})

    when: Literal["different", "always", "excused"] = Field(
        "different",
        description="Which converted models: those whose outputs differ by more than `equivalent` allows; all; or "
        "only those whose difference is within rounding error or the limits of quantization, whose outputs hardly "
        "vary, or that exceed those limits on random inputs.",
    )
    samples: Int = Field(8, ge=1, description="Inputs that layers are compared on.")
    batch_size: Int = _as_of(Localize, "batch_size", ge=1)
    recipe_runs: Int = Field(
        300,
        ge=1,
        description="Runs to find the right preprocessing of a model whose photos are preprocessed wrongly.",
    )
    recipe_seconds: Seconds = Field(60.0, gt=0, description="Time for that.")
    latent: Bool = _as_of(Localize, "latent")


class RepairConfig(Strict):
    """How targets, and conversions that give none, are repaired."""

    targets: Bool = Field(True, description="Repair converted models with faulty layers.")
    conversions: Bool = Field(True, description="Convert in another way where a conversion gives nothing that runs.")
    seconds: Seconds = _as_of(Repair, "seconds", gt=0, le=MOST_SECONDS)
    advice_seconds: Seconds = _as_of(Repair, "advice", ge=0, le=MOST_SECONDS)
    edits: tuple[EditKind, ...] | None = Field(
        None,
        description="Only such edits: another recipe for photos, inputs or outputs exchanged, sizes of "
        "inputs, parameters, scales of quantized tensors (or a layer without), attributes, operators that reorder "
        "axes, other operators. "
        "Default: all.",
    )
    bake_recipe: Bool = _as_of(Repair, "bake_recipe")
    unseen: Int = Field(64, ge=1, description="Inputs to verify on, other than those that layers were compared on.")


class LimitsConfig(Strict):
    """Bounds of a run."""

    seconds: Seconds = Field(600.0, gt=0, description="For one conversion or execution.")
    compiled_seconds: Seconds | None = Field(
        None,
        gt=0,
        description="A compiled model gets no further samples after so many seconds, and is judged on those that it "
        "had: a slow device doesn't hold up an audit. Default: it gets all.",
    )
    workers: Int = Field(2, ge=1, le=64, description="Jobs side by side, as far as there is memory for them.")
    timed: Bool = Field(
        True, description="Executions run alone, so that times can be compared. false: side by side, as all else."
    )
    memory_gb: Float | None = Field(
        None,
        gt=0,
        description="A worker that holds more GiB is stopped, and its job fails (on Linux). Default: all together "
        "may hold what's free when the first job starts, less a reserve; else the largest is stopped.",
    )


class EngineConfig(Strict):
    """What runs jobs; without anything in it, this machine."""

    @property
    def chosen(self) -> dict[str, Engine]:
        """The one that's named, by its key; nothing for this machine."""
        there = ((name, getattr(self, name)) for name in ENGINES)
        return dict(itertools.islice(((name, part) for name, part in there if part is not None), 1))

    @contextlib.contextmanager
    def opened(self, *, quiet: bool = True) -> Iterator[None]:
        """Run the jobs of a block where it's said.

        Args:
            quiet: Whether nothing is told of it.

        Raises:
            UsageError: if it may not be used, or isn't installed.
            DeviceError: if it doesn't answer.
        """
        with contextlib.ExitStack() as stack:
            for part in self.chosen.values():
                stack.enter_context(part.opened(quiet=quiet))
            yield


if not TYPE_CHECKING:
    EngineConfig = with_parts(EngineConfig, {name: (part, part.__doc__) for name, part in ENGINES.items()})


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


def _no_truth(value: Any) -> Any:
    """Python's True is equal to 1, JSON's isn't."""
    if value is True:
        raise ValueError("Input should be 1")
    return value


def _of_something(schema: dict[str, Any], kind: type[AuditConfig]) -> None:
    lists = [{"required": [key], "properties": {key: {"minItems": 1}}} for key in ("models", "architectures")]
    parts = [{"required": [key], "properties": {key: {"type": "object"}}} for key in kind.parts]
    schema["anyOf"] = [*lists, *parts]


class AuditConfig(Strict):
    """A whole audit: `python3 main.py CONFIG`."""

    model_config = ConfigDict(json_schema_extra=_of_something)
    parts: ClassVar[tuple[str, ...]] = ()

    schema_: str | None = Field(None, alias="$schema", description="For editors.")
    schema_version: Annotated[Literal[1], BeforeValidator(_no_truth)] = Field(
        1, description="Version of this format."
    )
    name: _Name = "audit"
    output: OutputPath = Field("generated", description="Folder of all outputs, relative to this file.")
    dataset: DatasetConfig = Field(default_factory=lambda: DatasetConfig(zoo="photos"))
    models: tuple[ModelConfig, ...] = ()
    architectures: tuple[ArchitecturesConfig, ...] = Field(
        (), description="Whole lists of architectures, after the models."
    )
    keep_models: Bool = Field(
        False,
        description="Keep the model files of audited architectures; else they go as soon as their rows are there.",
    )
    devices: dict[str, RpcDeviceConfig] = Field(
        default_factory=dict, description="Devices that TVM reaches over RPC, by the names that backends call them."
    )
    backends: Backends = Field(
        (LibrariesConfig(name="libraries"),),
        description='Where models run; "all" for all that are installed, with their optimizations and without.',
    )
    stages: StagesConfig = StagesConfig()
    tolerance: ToleranceConfig = ToleranceConfig()
    metrics: MetricsConfig = MetricsConfig()
    localize: LocalizeConfig = LocalizeConfig()
    repair: RepairConfig = RepairConfig()
    limits: LimitsConfig = LimitsConfig()
    engine: EngineConfig = EngineConfig()
    batch_size: Int = Field(16, ge=1)
    top_k: Int = Field(5, ge=1, le=1000)
    reuse: Bool = Field(True, description="Take stored results whose inputs are unchanged.")

    @model_validator(mode="before")
    @classmethod
    def _devices_by_name(cls, value: Any) -> Any:
        """Put devices in the place of their names; what isn't one is left to be refused where it stands."""
        devices = value.get("devices") if isinstance(value, dict) else None
        if not isinstance(devices, dict):
            return value
        known = {name: {"name": name} | item for name, item in devices.items() if isinstance(item, dict)}
        models = [_with_devices(model, known) for model in _items(value, "models")]
        return _with_devices(value, known) | {"devices": devices | known} | ({"models": models} if models else {})

    @model_validator(mode="after")
    def _names_fit_together(self) -> AuditConfig:
        if problems := list(broken_rules(self)):
            raise refusal_at(problems)
        return self

    @classmethod
    def with_parts(cls, names: Iterable[str]) -> type[AuditConfig]:
        """The configuration with sections of plug-ins.

        Args:
            names: Keys, some of which may be sections.
        """
        more = [name for name in names if name not in cls.model_fields and name in PARTS]
        if not more:
            return cls
        found = with_parts(cls, {name: (PARTS[name].config, PARTS[name].words) for name in more})
        found.parts = (*cls.parts, *more)
        return found

    @property
    def asked(self) -> list[tuple[str, Any, Part]]:
        """Sections that are there, by their keys."""
        there = [(name, getattr(self, name), PARTS[name]) for name in self.parts]
        return [item for item in there if item[1] is not None]

    def part_problems(self, base: Path) -> list[str]:
        """What a run would refuse of them, a line for each, which begins with the place in the configuration.

        Args:
            base: Folder that relative paths start from.
        """
        return [line for _, section, part in self.asked for line in part.problems(section, self, base)]

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
