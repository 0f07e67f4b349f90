"""What a system is, the settings that it's run with, and programs that do the same by libraries alone."""

from __future__ import annotations

import abc
import dataclasses
import functools
import hashlib
import json
import tempfile
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.formats.backends.all_backends import backend, compiler, compiles
from conrepair.formats.backends.base import Switch
from conrepair.formats.converters.routes import Route, find_route, pinned_route
from conrepair.formats.models.identity import model_sha256
from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.formats.networks.network import Network
from conrepair.formats.onnx.load.file import specs_of_proto
from conrepair.formats.onnx.load.proto_file import read_proto
from conrepair.ground.runtime.errors import ConversionError
from conrepair.ground.runtime.files.whole import canonical_json
from conrepair.ground.runtime.processes.reach import CONFINED
from conrepair.ground.runtime.typed import typed
from conrepair_lab.systems.wrapped import Gradients, Threaded, named

Arrays = Mapping[str, np.ndarray[Any, Any]]
"""By name."""

_FORMAT = "onnx"  # that cases have
_LIBRARIES = "libraries"
_TRAINED = 3  # times as long as answers take: these, and gradients with what's expected of them
_RUNS: Mapping[str, tuple[str, ...]] = {
    "onnxruntime": ("onnxruntime",),
    "tvm": ("apache-tvm",),
    "inductor": ("torch",),
    "xla": ("tensorflow",),
    "tflite": ("ai-edge-litert",),
    "torch": ("torch",),
    "keras": ("keras", "tensorflow"),
    "tensorflow": ("tensorflow",),
}  # distributions by backend, or format where that's the libraries' own
_THREADED = {"onnxruntime", "tvm", "inductor", "tflite", "torch"}
_OF_A_PROCESS = "torch"  # whose threads are a process's own, and can be told while it runs


@dataclass(frozen=True)
class Setting:
    """How a system runs a model.

    Attributes:
        backend: A key of `conrepair.formats.backends.all_backends.BACKENDS`.
        options: Of that backend, as a configuration has them.
        route: Converters that bring an ONNX file there, by name; none for the shortest way to the system's format.
        conversion: Their options, by converter.
    """

    backend: str
    options: Mapping[str, Any] = field(default_factory=dict)
    route: tuple[str, ...] = ()
    conversion: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def reach(self) -> str:
        """How far a process has to reach that runs it, of `conrepair.ground.runtime.processes.reach`."""
        return backend(self.backend).reach(self.options)

    def with_options(self, options: Mapping[str, Any]) -> Setting:
        """The same with other options."""
        return dataclasses.replace(self, options=dict(options))


@dataclass(frozen=True)
class Chosen:
    """A system and how it's run, as jobs are told.

    Attributes:
        system: Its name.
        setting: How.
    """

    system: str
    setting: Setting


@dataclass(frozen=True)
class Program:
    """Python in two parts, so that a process that stays loads a model once.

    Attributes:
        load: Imports, and what makes a model that lies in the current folder ready to run.
        run: Reads `inputs.npz`, runs it, and writes `outputs.npz`, arrays by the names of the file.
        record: An expression: what a backend's `switches` ask of a model that's loaded, JSON-able.
    """

    load: str
    run: str
    record: str = "{}"

    @property
    def text(self) -> str:
        """All of it, one behind the other."""
        return self.load + self.run

    @property
    def module(self) -> str:
        """A module that loads the model when it's imported, says `record()`, and runs it by `run()`."""
        record = f"def record():\n    return {self.record}"
        return f"{self.load}\n\n{record}\n\n\ndef run():\n{textwrap.indent(self.run, '    ')}"


_THROUGH_CONREPAIR = """\
import dataclasses
from pathlib import Path

import numpy

from conrepair.formats.models.model import Model
from conrepair_lab.systems.registry import entry

asked = entry({name!r})
setting = dataclasses.replace(asked.chosen, options={options}, conversion={conversion})
runnable = asked.runs.open(Model("onnx", "model.onnx", "0" * 64), setting, Path(""))
"""
_RUN = """\
with numpy.load("inputs.npz") as inputs:
    numpy.savez("outputs.npz", **runnable.run(dict(inputs)))
"""


def through_conrepair(name: str, setting: Setting) -> Program:
    """A program that runs a setting by conrepair, where no library does it by itself.

    Args:
        name: Of an entry with the same backend and converters.
        setting: Whose options it has.
    """
    options, conversion = dict(setting.options), dict(setting.conversion)
    return Program(_THROUGH_CONREPAIR.format(name=name, options=options, conversion=conversion), _RUN)


class System(abc.ABC):
    """A way in which ONNX files are run.

    Attributes:
        name: By which it's asked for.
        format: That its backend is given; converters bring an ONNX file to it.
        file: What programs call the model in that format.
        settings: By name.
        plain: The name of the setting that leaves most out, which others are compared with.
        usual: Of the one with the usual optimizations.
        fusion: The backend's option that says how many operators a kernel may be fused of; "" where there's none.
        seconds: How long a setting takes for a small network, in times of ONNX Runtime's.
        kernels: Whether it has kernels of its own, whose accuracy can be measured.
        trains: Whether it differentiates what it runs.
        alike: Whether all settings of a device are to take the same networks: they optimize more or less.
        packages: Whose kernels run, and what else its programs need, where a plug-in says it.
        lacks: What isn't installed that it needs, where a plug-in says it.
    """

    name: str
    format: str = _FORMAT
    file: str = "model.onnx"
    settings: Mapping[str, Setting]
    plain: str
    usual: str
    fusion: str = ""
    seconds: int = 1
    kernels: bool = True
    trains: bool = False
    alike: bool = False
    packages: tuple[str, ...] = ()
    lacks: str = ""

    def needs(self, setting: Setting) -> frozenset[str]:
        """Frameworks that a setting imports, and the environment that it runs in, where that isn't ours."""
        route = self.route(setting)
        return frozenset({_FORMAT, self.format}).union(*(step.needs | {step.target} for step in route.steps))

    def cost(self, setting: Setting) -> int:
        """How long it takes for a small network, in times of ONNX Runtime's: campaigns deal time by it."""
        return self.seconds * (_TRAINED if self.trains and setting != self.settings[self.plain] else 1)

    def blamed(self, setting: Setting, versions: Mapping[str, str]) -> dict[str, str]:
        """Distributions between which a fault of a setting lies.

        Args:
            setting: Which.
            versions: Of what's installed.
        """
        names = [name for step in self.route(setting).steps for name in step.distributions]
        names += _RUNS.get(self.runner(setting), self.packages)
        return {name: versions[name] for name in dict.fromkeys(names) if name in versions}

    def runner(self, setting: Setting) -> str:
        """Whose kernels a setting runs: the backend, or the format where that's the libraries' own."""
        return setting.backend if setting.backend != _LIBRARIES else self.route(setting).steps[-1].target

    def threads(self, setting: Setting) -> bool:
        """Whether a setting takes an option `threads`: how many compute on the processor."""
        return self.runner(setting) in _THREADED and setting.reach == CONFINED

    def distribution(self, setting: Setting) -> str:
        """The library whose other releases can run a setting's program, as package indices call it; "" for none."""
        return ""

    def route(self, setting: Setting, model: Model | None = None) -> Route:
        """The converters that a model passes through.

        Args:
            setting: How it's run.
            model: An ONNX file, so that converters that don't take it aren't chosen.
        """
        if setting.route:
            return pinned_route(setting.route, _FORMAT)
        return Route(()) if self.format == _FORMAT else find_route(_FORMAT, self.format, model=model)

    def drawn(self, setting: Setting, generator: np.random.Generator) -> dict[str, Any]:
        """Options with which a setting has to give right answers, too.

        Args:
            setting: Whose options these add to.
            generator: By which they're drawn.

        Returns:
            JSON values by name, for `with_drawn`.
        """
        return {}

    def with_drawn(self, setting: Setting, options: Mapping[str, Any]) -> Setting:
        """A setting with drawn options besides: those of the backend.

        Args:
            setting: Of this system.
            options: From `drawn`, or some of them.
        """
        return setting.with_options({**setting.options, **options})

    def symbolic(self, setting: Setting) -> Setting | None:
        """The setting as it builds once for all sizes that a network leaves open by name.

        Args:
            setting: Of this system.

        Returns:
            None where each build is for definite sizes.
        """
        return None

    def listing(self, setting: Setting) -> Setting:
        """The setting whose `environment` a process needs that is asked for the switches of one."""
        return setting.with_options(backend(setting.backend).listing(setting.options))

    def switches(self, model: Model, setting: Setting, folder: Path, *, gradients: bool = False) -> Sequence[Switch]:
        """What is done with a model that can be left out, in the order in which it's done.

        Args:
            model: An ONNX file.
            setting: How it's run.
            folder: For files, those of `open` among them, which needn't be made again.
            gradients: Whether it's differentiated, too.

        Raises:
            ConrepairError: if the system doesn't take the model.
        """

        def load(options: Mapping[str, Any]) -> Runnable:
            found = self.loaded(self.converted(model, setting, folder), setting.with_options(options), folder)
            if gradients:
                Gradients(found).run_on_zeros()
            return found

        return backend(setting.backend).switches(setting.options, load)

    def without(self, setting: Setting, off: Sequence[Switch]) -> Setting:
        """A setting that leaves something out besides.

        Args:
            setting: Whose switches they are.
            off: From `switches`.
        """
        return setting.with_options(backend(setting.backend).without(setting.options, [item.name for item in off]))

    @abc.abstractmethod
    def program(self, setting: Setting) -> Program:
        """A program that does the same as `open` and a run with the libraries alone.

        Args:
            setting: Of this system.

        Returns:
            What reads `file` (what `programmed` makes of a model) in its folder.
        """

    def training_program(self, setting: Setting) -> Program:
        """A program that does the same as `gradients` and a run, as `program` does.

        Cotangents are standard normal numbers, drawn anew for each output by NumPy's generator of seed 0.

        Args:
            setting: Of this system, which trains.
        """
        raise NotImplementedError(f"{self.name} doesn't train")

    def programmed(self, model: Model, setting: Setting, folder: Path) -> Model:
        """What programs begin with; arguments and errors are those of `converted`."""
        return self.converted(model, setting, folder)

    def sized(self, model: Model, batch: int, folder: Path) -> Model:
        """The model for so many samples at once, where what runs it leaves no size open; else as it is.

        Args:
            model: An ONNX file.
            batch: In place of a symbol.
            folder: For files.

        Raises:
            ConversionError: if another size is open.
        """
        return model

    def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
        """Convert, compile and load a model, as far as the system needs it.

        Args:
            model: An ONNX file.
            setting: How it's run.
            folder: For files; exists. What's converted lies there for the next setting.

        Returns:
            What runs batches of one, where the model leaves the size of a batch open.

        Raises:
            ConrepairError: if the system doesn't take the model.
        """
        there = self.converted(model, setting, folder)
        loaded = self.loaded(there, setting, folder)
        if there is model:
            return loaded
        return named(loaded, *specs_of_proto(read_proto(Path(model.path))))

    def quick(self, network: bytes, setting: Setting, folder: Path) -> Callable[[Arrays], Arrays]:
        """What gives a network's answers with little around it that takes time; errors are the libraries' own.

        Args:
            network: An ONNX model.
            setting: How it's run.
            folder: For files.
        """
        path = folder / "quick.onnx"
        path.write_bytes(network)
        runnable = self.open(Model(_FORMAT, str(path), model_sha256(path)), setting, folder)
        return lambda inputs: {name: np.array(array) for name, array in runnable.run(dict(inputs)).items()}

    def with_threads(self, opened: Runnable, model: Model, setting: Setting, folder: Path, count: int) -> Runnable:
        """The same with another number of threads; other arguments and errors are those of `open`.

        Args:
            opened: What `open` gave, which isn't run any more.
            model: An ONNX file.
            setting: How it's run.
            folder: For files.
            count: Of threads.
        """
        return self.open(model, setting.with_options({**setting.options, "threads": count}), folder)

    def gradients(self, model: Model, setting: Setting, folder: Path, *, double: bool = False) -> Runnable:
        """What gives a model's vector-Jacobian products; other arguments and errors are those of `open`.

        Args:
            model: An ONNX file.
            setting: How it's run.
            folder: For files.
            double: Whether in float64, by the plain setting.

        Returns:
            See `conrepair_lab.systems.wrapped.Gradients`; the system `trains`.
        """
        return Gradients(self.open(model, setting, folder))

    def loaded(self, there: Model, setting: Setting, folder: Path) -> Runnable:
        """Compile and load what `converted` gave; it has that format's names.

        Args:
            there: In the format that the backend is given.
            setting: How it's run.
            folder: For files.

        Raises:
            ConrepairError: if the backend doesn't take it.
        """
        chosen, options = backend(setting.backend), dict(setting.options)
        if words := chosen.refuses(there):
            raise ConversionError(words)
        chosen.check(options)
        if compiles(setting.backend):
            number = sum(1 for _ in folder.glob("build-*"))
            built = folder / f"build-{number}"
            built.mkdir()
            compiler(setting.backend).compile(there, options | {"check_device": True}, 1, built)
            options["build"] = {"path": str(built)}
        elif (count := options.get("threads")) and there.framework == _OF_A_PROCESS:
            return Threaded(int(count), functools.partial(chosen.load, there, options))
        return chosen.load(there, options)

    def converted(self, model: Model, setting: Setting, folder: Path) -> Model:
        """The model in the format that the backend is given.

        Args:
            model: An ONNX file.
            setting: How it's run.
            folder: For files.

        Raises:
            ConrepairError: if a converter doesn't take it.
        """
        route = self.route(setting, model)
        if not route.steps:
            return model
        asked = hashlib.sha256(canonical_json([route.name, setting.conversion]).encode()).hexdigest()
        known = folder / f"{model.sha256[:12]}.{asked[:12]}.json"
        if not known.is_file():
            made = route.convert(model, Path(tempfile.mkdtemp(dir=folder)), setting.conversion)
            known.write_text(json.dumps(asdict(made)), encoding="utf-8")
        return typed(Model, json.loads(known.read_text(encoding="utf-8")))

    def observed(self, model: Model, setting: Setting, folder: Path) -> Network | None:
        """The model as a setting runs it, to be looked into kernel by kernel.

        Args:
            model: An ONNX file whose sizes are numbers.
            setting: How it's run.
            folder: For files.

        Returns:
            A network whose tensors are called as in the file; None where the system lets nobody look.

        Raises:
            ConrepairError: if the system doesn't take the model, or what it made of it can't be cut.
        """
        return None

    def environment(self, setting: Setting) -> Mapping[str, str]:
        """Variables that a process must be started with to run a setting."""
        return backend(setting.backend).environment(setting.options)

    def plain_beside(self, setting: Setting) -> Setting | None:
        """The plain setting, where that's another one, and runs in the process that runs this one.

        Args:
            setting: That isn't the plain one, maybe.
        """
        plain = self.settings[self.plain]
        return plain if plain != setting and self.environment(plain) == self.environment(setting) else None
