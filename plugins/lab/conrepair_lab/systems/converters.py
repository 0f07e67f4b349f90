"""Converters, optimizers of ONNX files and round trips, each run with no optimization: what differs is its doing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from conrepair.formats.backends.base import Switch
from conrepair.formats.converters.all_converters import converter
from conrepair.formats.converters.base import Converter, comma_parts
from conrepair.formats.converters.routes import Route
from conrepair.formats.models.model import Model
from conrepair_lab.systems import ort
from conrepair_lab.systems.system import Program, Setting, System, through_conrepair

_OF = ":"
_SHARE = 0.5  # of options that are drawn; and the most passes that are left out
_LEFT_OUT = 3
_PLAIN = ort.SYSTEM.settings[ort.SYSTEM.plain]
_TO_ONNX: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "onnxslim": ("onnx-onnxslim",),
        "onnxsim": ("onnx-onnxsim",),
        "onnxoptimizer": ("onnx-onnxoptimizer",),
        "version": ("onnx-version-converter",),
        "normalise": ("onnx-normalise",),
        "keras": ("onnx-keras", "keras-onnx-tf2onnx"),
        "keras-export": ("onnx-keras", "keras-onnx-export"),
        "dynamo": ("onnx2torch", "torch-onnx-dynamo"),
        "script": ("onnx2torch", "torch-onnx-script"),
    }
)
_TO_OTHERS = MappingProxyType(
    {
        "import": Setting("libraries", route=("onnx-keras",)),
        "onnx2torch": Setting("libraries", route=("onnx2torch",)),
        "tflite": Setting("tflite", {"kernels": "reference"}, ("onnx-keras", "keras-tflite")),
        "tvm-torch": Setting("tvm", {"setting": "O0"}, ("onnx2torch",)),
        "tvm-tflite": Setting("tvm", {"setting": "O0"}, ("onnx-keras", "keras-tflite")),
    }
)
_Options = Mapping[str, Any]


def through(route: Route) -> Setting:
    """A setting that converts, and runs what comes out by the libraries of its format.

    Args:
        route: From ONNX files.
    """
    return Setting("libraries", route=tuple(step.name for step in route.steps))


def _patterns(off: Sequence[str]) -> str:
    """As Python: of names that a release doesn't have onnxslim raises a KeyError."""
    known = "onnxslim.core.pattern.registry.DEFAULT_FUSION_PATTERNS"
    return f"[name for name in {off} if name in {known}]" if off else "None"


_ONE_LIBRARY: Mapping[str, Callable[[_Options], str]] = MappingProxyType(
    {
        "onnx-onnxslim": lambda said: (
            "import onnxslim\n\n"
            f"slim = onnxslim.slim(model, no_shape_infer={not said['infer_shapes']}, "
            f"skip_fusion_patterns={_patterns(comma_parts(said['without']))})\nonnx.save(slim, 'converted.onnx')"
        ),
        "onnx-onnxsim": lambda said: (
            "import onnxsim\n\n"
            f"simple, _ = onnxsim.simplify(model, check_n=0, skip_fuse_bn={not said['fuse_batch_norm']}, "
            f"skip_constant_folding={not said['fold_constants']}, skip_shape_inference={not said['infer_shapes']}, "
            f"include_subgraph={said['branches']})\nonnx.save(simple, 'converted.onnx')"
        ),
        "onnx-onnxoptimizer": lambda said: (
            "import onnxoptimizer\n\npasses = onnxoptimizer.get_fuse_and_elimination_passes()\n"
            f"passes = [name for name in passes if name not in {comma_parts(said['without'])}]\n"
            "onnx.save(onnxoptimizer.optimize(model, passes), 'converted.onnx')"
        ),
        "onnx-version-converter": lambda said: (
            "from onnx import version_converter\n\n"
            f"onnx.save(version_converter.convert_version(model, {said['opset']}), 'converted.onnx')"
        ),
    }
)


class Converters(System):
    """See `System`; a setting is a chain of converters, and what runs where they end."""

    name = "convert"
    settings = MappingProxyType(
        {"none": _PLAIN}
        | {name: Setting(_PLAIN.backend, _PLAIN.options, route) for name, route in _TO_ONNX.items()}
        | dict(_TO_OTHERS)
    )
    plain, usual = "none", "onnxslim"
    kernels = False

    def cost(self, setting: Setting) -> int:
        """Of optimizers of ONNX files less than of frameworks."""
        return 2 if all(step.target == self.format for step in self.route(setting).steps) else 20

    def switches(self, model: Model, setting: Setting, folder: Path, *, gradients: bool = False) -> Sequence[Switch]:
        """What its converters' options leave out."""
        return [switch for step in self.route(setting).steps for switch in _switches(step)]

    def without(self, setting: Setting, off: Sequence[Switch]) -> Setting:
        """By these options."""
        return self.with_drawn(setting, {switch.name: False for switch in off})

    def drawn(self, setting: Setting, generator: np.random.Generator) -> dict[str, Any]:
        """Other values of its converters' options that make the same network; some passes are left out."""
        found: dict[str, Any] = {}
        for step in self.route(setting).steps:
            for name, option in step.options.items():
                others = [value for value in option.alternatives if value != option.default]
                if not option.alternatives and option.default is True:
                    others = [False]
                if others and generator.random() < _SHARE:
                    found[f"{step.name}{_OF}{name}"] = others[int(generator.integers(len(others)))]
            parts = step.parts()
            count = min(len(parts), int(generator.integers(0, _LEFT_OUT + 1)))
            off = generator.choice(parts, count, replace=False) if count else ()
            found |= {f"{step.name}{_OF}{part}": False for part in sorted(off)}
        return found

    def with_drawn(self, setting: Setting, options: Mapping[str, Any]) -> Setting:
        """By converter: values of its options, and passes that it leaves out."""
        conversion = {name: dict(given) for name, given in setting.conversion.items()}
        for named, value in options.items():
            name, part = named.split(_OF)
            given = conversion.setdefault(name, {})
            if part in converter(name).options:
                given[part] = value
            else:
                given["without"] = ",".join(filter(None, (given.get("without"), part)))
        return dataclasses.replace(setting, conversion=conversion)

    def symbolic(self, setting: Setting) -> Setting | None:
        """As it is, where what runs it takes all sizes."""
        return setting if setting.backend in {_PLAIN.backend, "libraries"} else None

    def distribution(self, setting: Setting) -> str:
        """Of a converter that is one library's; its programs convert."""
        return self.route(setting).steps[0].distributions[0] if _alone(setting) else ""

    def programmed(self, model: Model, setting: Setting, folder: Path) -> Model:
        """The ONNX file: programs convert it themselves. What ONNX Runtime runs then has its casts before that."""
        return ort.plainly_fed(model, folder) if _alone(setting) else model

    def program(self, setting: Setting) -> Program:
        """The converter's own call, where one library does it; else conrepair's."""
        if not setting.route:
            return ort.SYSTEM.program(setting)
        if name := _alone(setting):
            lines = _ONE_LIBRARY[name](converter(name).complete(setting.conversion.get(name, {})))
            run = ort.SYSTEM.program(setting)
            load = run.load.replace(f'"{ort.SYSTEM.file}"', '"converted.onnx"')
            return Program(f'import onnx\n\nmodel = onnx.load("model.onnx")\n{lines}\n{load}', run.run)
        chain = setting.route, setting.backend
        name = next(name for name, known in self.settings.items() if (known.route, known.backend) == chain)
        return through_conrepair(f"{self.name}-{name}", setting)


def _alone(setting: Setting) -> str:
    """The converter of a setting that one library has by itself; "" where there's none, or several."""
    (name, *others) = setting.route or ("",)
    return name if name in _ONE_LIBRARY and not others else ""


def _switches(step: Converter) -> Iterator[Switch]:
    for name, option in step.options.items():
        if option.default is True:
            yield Switch(f"{step.name}{_OF}{name}", "option", f"option {name}=false of {step.name}")
    for part in step.parts():
        yield Switch(f"{step.name}{_OF}{part}", "pass", f"leave pass {part!r} out of those that are given to it")


SYSTEM = Converters()
