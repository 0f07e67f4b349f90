"""From a model to a folder that holds everything that is needed to run it, and to see what was made."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from conrepair.formats.models.model import Model
from conrepair.formats.tvm.calls import CALLS, Calls
from conrepair.formats.tvm.cuda import CUBIN, arithmetic, check_architecture, compile_source, what_was_compiled
from conrepair.formats.tvm.exceptions import with_exceptions
from conrepair.formats.tvm.following import Following
from conrepair.formats.tvm.imported import Imported
from conrepair.formats.tvm.options import BUILD, IMPORTER_FORMATS, TvmOptions
from conrepair.formats.tvm.settings import TUNED, BuildContext, PlacedPass, steps_of
from conrepair.ground.runtime.errors import ConversionError, ModelLoadError
from conrepair.ground.runtime.files.json_file import read_json_text, value_of
from conrepair.ground.runtime.files.whole import sha256_of, write_json, write_text
from conrepair.ground.runtime.words import lines_of, meant

# Which compiler makes a library of what TVM generates: this machine's, a cross-compiler, or the device's own.

_COMPILERS = ("g++", "clang++", "c++", "gcc", "clang")
_TRIPLE = "mtriple"
_LIBRARY = "module.so"


def _linking_for(options: TvmOptions) -> tuple[str, Callable[..., Any] | None]:
    """The name of the library, and what links it; None: TVM's own choice for the name, this machine's compiler.

    Objects in a tar file are linked where they're loaded.

    Raises:
        ConversionError: if there's no such compiler.
    """
    device = options.device
    if device is not None and device.linker is not None:
        if shutil.which(device.linker) is None:
            raise ConversionError(
                f"{device}: its `linker` {device.linker} isn't on the path. Install it, or leave it out: then the "
                "device links with its own compiler."
            )
        from tvm.support import cc

        return _LIBRARY, cc.cross_compiler(device.linker)
    other = {_TRIPLE} & {*options.parsed_target.attributes, *options.host_target.attributes}
    if device is not None and other:
        return "module.tar", None
    if not any(map(shutil.which, _COMPILERS)):
        raise ConversionError(
            f"TVM links its code with a C++ compiler, and none is on the path ({', '.join(_COMPILERS)}). Install g++."
        )
    return _LIBRARY, None


_VERSION = 1
_SOURCES = {"llvm": ("ll", "host.ll"), "opencl": ("", "device.cl"), "cuda": ("", "device.cu")}


def build(model: Model, options: TvmOptions, batch: int, folder: Path) -> dict[str, Any]:
    """Import, optimize and compile a model.

    Args:
        model: In a format that one of TVM's importers reads.
        options: How.
        batch: In place of a symbolic one.
        folder: Receives the compiled module, Relax and generated code, and `build.json`.

    Returns:
        What `build.json` says.

    Raises:
        ConfigError: if the target isn't one.
        ConversionError: if the model can't be imported or compiled.
    """
    started = time.perf_counter()
    imported = _imported(model, batch, options)
    seconds = {"import": time.perf_counter() - started}
    with arithmetic(fast_math=options.fast_math):
        record = compile_module(imported, options, folder, seconds)
    # Kernels are compared with what was imported, which isn't the file itself where sizes were open, or decomposed.
    kept = imported.save(folder) if options.device is None and imported.save is not None else None
    source = {"framework": model.framework, "sha256": model.sha256, "kept": kept}
    record = {"source": source} | record
    if kept is not None:  # with it, weights that it has in another file
        record["files"] |= {path.name: sha256_of(path) for path in sorted(folder.glob(f"{kept}*"))}
    write_json(folder / BUILD, record)
    stored: dict[str, Any] = json.loads((folder / BUILD).read_text(encoding="utf-8"))
    return stored


def taken(built: Path, folder: Path) -> dict[str, Any]:
    """Take a build that was made before.

    Args:
        built: Its folder.
        folder: Receives a copy.

    Returns:
        What its `build.json` says.

    Raises:
        ModelLoadError: if it isn't whole: a file is missing, or has another content.
    """
    try:
        record: dict[str, Any] = value_of(read_json_text(built / BUILD))
        changed = [name for name, sha256 in record["files"].items() if sha256_of(built / name) != sha256]
        if changed:
            raise ModelLoadError(
                f"{built} isn't the build that it was: {', '.join(changed)} changed. Build it again."
            )
        shutil.copytree(built, folder, dirs_exist_ok=True)
    except (OSError, KeyError, ValueError) as error:
        raise ModelLoadError(
            f"{built} is no build of TVM: {type(error).__name__}: {error}. Build it again."
        ) from error
    return record


def unobservable(record: Mapping[str, Any]) -> str:
    """Why the kernels of a build can't be compared with its model's layers, in words; "" where they can.

    Args:
        record: What its `build.json` says.
    """
    if record["options"].get("device") is not None:
        return "it runs on another machine. Build the model for this one, without `device`, to look into its kernels"
    return "" if CALLS in record["files"] else "values decide which of its kernels run, or how large results are"


# Functions that TVM puts into vectors, and then has no code for.
_WITHOUT_FORM = ("tirx.cosh", "tirx.sinh")
_LEVEL = 11  # TVM's own is 10


def _compute_one_by_one() -> None:
    """Tell TVM of functions that LLVM has for single numbers only, so that it takes a vector of them apart.

    It says of each that it may be in a vector (`TVectorizable`), and stops at it: "unknown intrinsic tirx.sinh".
    """
    import tvm

    for name in _WITHOUT_FORM:
        if tvm.ir.Op.get(name).get_attr("TVectorizable"):
            tvm.ir.register_op_attr(name, "TVectorizable", value=False, level=_LEVEL)


def compile_module(
    imported: Imported, options: TvmOptions, folder: Path, seconds: Mapping[str, float] | None = None
) -> dict[str, Any]:
    """Optimize and compile what was imported; as `build`, without `build.json`."""
    import tvm

    from conrepair.formats.tvm.passes_run import PassesRun
    from conrepair.formats.tvm.target import needs_bridge
    from conrepair.formats.tvm.tuning import check_tuning

    _compute_one_by_one()
    library, linker = _linking_for(options)
    check_architecture(options.parsed_target)
    steps = steps_of(options.parsed_target, options.setting, options.required_pass, options.disabled_pass)
    tuned = TUNED in [step.name for step in steps]
    if tuned:
        check_tuning(options.parsed_target.kind, options.database)
    wanted = options.parsed_target.for_tuning() if tuned else options.parsed_target
    target = wanted.resolve(options.host_target)
    place = BuildContext(target, folder, options.trials, options.database)
    bridge = options.device is None and needs_bridge(target.kind.name)
    passes = PassesRun(options.left_out)
    started = time.perf_counter()
    context = tvm.transform.PassContext(opt_level=3, instruments=[passes.instrument()], config=options.pass_config)
    with target, context:
        following = Following(imported)
        apart = {"unfused": options.unfused, "unscheduled": options.unscheduled}
        _check_operators(apart, imported)

        module = _applied([step for step in steps if not step.lowering], imported.module, place, following, apart)
        kernels = _kernels(module)
        write_text(folder / "relax.py", module.script(show_meta=False))
        optimized = time.perf_counter()
        lowering = [step for step in steps if step.lowering]
        files, calls = _compile(module, lowering, place, following, library, linker, bridge=bridge)
    passes.check()
    if calls is not None:
        write_json(folder / CALLS, asdict(calls))
        files.append(CALLS)
    nvcc = compile_source(folder, options.parsed_target)
    files += [CUBIN] if nvcc is not None else []
    times = {"optimize": optimized - started, "compile": time.perf_counter() - optimized}
    return {
        "build_version": _VERSION,
        "importer": imported.importer,
        "target": str(target),
        "options": asdict(options),
        "pipeline": [step.name for step in steps],
        "passes_run": passes.names,
        "applications": passes.applications,
        "tuning": place.tuning or None,
        "kernels": kernels,
        "inputs": [asdict(spec) for spec in imported.inputs],
        "outputs": [asdict(spec) for spec in imported.outputs],
        "versions": _versions(),
        "seconds": {**(seconds or {}), **times},
        "library": library,
        "runs_on": "cpu" if target.kind.name == "llvm" or bridge else target.kind.name,
        "nvcc": nvcc,
        "when_built": what_was_compiled(options.parsed_target, nvcc),
        "bridge": bridge,
        "files": {name: sha256_of(folder / name) for name in sorted(files)},
    }


def _imported(model: Model, batch: int, options: TvmOptions) -> Imported:
    if model.framework != "onnx" and (options.stable or options.float64):
        raise ConversionError(
            f"operators of {model.framework} models get no other form: leave `stable` and `float64` out"
        )
    if model.framework not in IMPORTER_FORMATS:
        raise ConversionError(f"TVM has no importer for {model.framework}; convert the model to ONNX first.")
    importer = importlib.import_module(f"conrepair.formats.tvm.import_{model.framework}")
    imported: Imported = importer.import_model(model, batch, options)
    return imported


def _check_operators(apart: Mapping[str, Sequence[str]], imported: Imported) -> None:
    """Refuse operators that the imported model doesn't have."""
    known = [operator.name for operator in imported.operators]
    for key, names in apart.items():
        for name in names:
            if name not in known:
                hint = meant(name, known, "they are called as in the file")
                raise ConversionError(f"{key}: the imported model has no operator '{name}'{hint}")


def _applied(
    steps: list[PlacedPass],
    module: Any,
    place: BuildContext,
    following: Following | None = None,
    apart: Mapping[str, Collection[str]] | None = None,
) -> Any:
    for step in steps:
        try:
            if following is not None and apart is not None:
                module = with_exceptions(step.name, module, apart, following)
            before, module = module, step.build(place)(module)
            if following is not None:
                module = following.after(step.name, before, module)
        except ConversionError:
            raise
        # Passes raise TVM's InternalError, ValueError and more.
        except Exception as error:
            raise _pass_error(step.name, error) from error
    return module


def _compile(
    module: Any,
    lowering: list[PlacedPass],
    place: BuildContext,
    following: Following,
    library: str,
    linker: Callable[..., Any] | None,
    *,
    bridge: bool,
) -> tuple[list[str], Calls | None]:
    """Generate code; returns the names of the files, and what is called."""
    from tvm import relax

    from conrepair.formats.tvm.opencl_bridge import PLANS, PROGRAM, bridged

    target, extra = place.target, []
    if bridge:
        module, extra = bridged(module, target, place.folder), [PLANS, PROGRAM]
        target = target.host
    first = next(number for number, step in enumerate(lowering) if step.mandatory)  # ends the dataflow form
    with target:
        module = _applied(lowering[:first], module, place, following)
        calls = following.calls(module)
        lowered = _applied(lowering[first:], module, place)
    try:
        executable = relax.build(lowered, target, relax_pipeline=None)
        executable.export_library(str(place.folder / library), fcompile=linker)
    except Exception as error:
        raise _pass_error("code generation", error) from error
    return [library, "relax.py", *extra, *_write_sources(executable.mod, place.folder)], calls


def _write_sources(module: Any, folder: Path) -> list[str]:
    """Write the code that TVM generated, host and device, where it has a text form."""
    written = []
    for part in _parts(module):
        if part.kind in _SOURCES:
            form, name = _SOURCES[part.kind]
            write_text(folder / name, part.inspect_source(form))
            written.append(name)
    return written


def _parts(module: Any) -> list[Any]:
    return [module, *(part for item in module.imports for part in _parts(item))]


def _kernels(module: Any) -> int:
    from tvm import tirx

    return sum(isinstance(function, tirx.PrimFunc) for _, function in module.functions_items())


def _pass_error(what: str, error: Exception) -> ConversionError:
    reason = lines_of(error)[-1][:400].rstrip(".")
    return ConversionError(
        f"TVM can't compile the model: {what} failed: {type(error).__name__}: {reason}. Try another `setting`, or "
        "leave the pass out (`disabled_pass`) where it isn't needed."
    )


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("apache-tvm", "apache-tvm-ffi", "numpy")}
