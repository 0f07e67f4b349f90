"""A Python converter under `coverage`, in a process of its own: `python -m benchmarks.generate.covering ASKED`.

ASKED is a JSON file: the converter, the models in order, the numbers of models behind which lines and branches are
counted, and the folder of what was found so far. Each count, and each refusal, is a line of JSON there.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import pkgutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import coverage

from conrepair.ground.runtime.torchvision import import_torchvision

__all__ = ["AT", "CONVERTERS", "FOUND"]

AT, FOUND = "at", "found.jsonl"
"""In the folder: the number of the model that's being converted, and what was found."""

CONVERTERS = {
    "onnx2torch": ("onnx2torch",),
    "onnx-keras": ("conrepair_onnx_keras.importer",),
    "tvm": ("tvm.relax.frontend.onnx",),
    "tflite-onnx-tf2onnx": ("tf2onnx.tflite_handlers", "tf2onnx.tflite_rewriters", "tf2onnx.tflite_utils"),
}
"""By name, the modules whose lines are counted."""

_DATA, _DONE = "coverage.data", "done"
_SAVED = 10
"""Models behind which what was covered is saved, in case the next one ends the process."""


def main(asked: dict[str, Any]) -> None:
    folder, done = Path(asked["folder"]), 0
    counting = coverage.Coverage(
        data_file=str(folder / _DATA), branch=True, include=_files(CONVERTERS[asked["converter"]])
    )
    if (folder / _DONE).is_file():
        done = int((folder / _DONE).read_text(encoding="utf-8"))
        counting.load()
    counting.start()
    _import(CONVERTERS[asked["converter"]])
    take = _taking(asked["converter"])
    for number, path in enumerate(asked["models"]):
        if number < done:
            continue
        if number in asked["marks"]:
            _count(counting, number, folder)
        if number % _SAVED == 0:
            counting.save()
            (folder / _DONE).write_text(str(number), encoding="utf-8")
        if number in asked["without"]:
            _note(folder, {"model": path, "refusal": "ends its process"})
            continue
        (folder / AT).write_text(str(number), encoding="utf-8")
        signal.setitimer(signal.ITIMER_REAL, asked["seconds"] if number > done else 5 * asked["seconds"])
        refusal = _refusal(take, path)
        signal.setitimer(signal.ITIMER_REAL, 0)
        (folder / AT).unlink()
        _note(folder, {"model": path, "refusal": refusal})
    _count(counting, len(asked["models"]), folder)


def _files(modules: tuple[str, ...]) -> list[str]:
    found = []
    for name in modules:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        package = spec.submodule_search_locations is not None
        found.append(f"{Path(spec.origin).parent}/*" if package else spec.origin)
    return found


def _import(modules: tuple[str, ...]) -> None:
    """Import all of it, so that what isn't used counts, too."""
    if "onnx2torch" in modules:
        import_torchvision()  # as it has to be imported
    for name in modules:
        package = importlib.import_module(name)
        for item in pkgutil.walk_packages(getattr(package, "__path__", []), f"{name}."):
            importlib.import_module(item.name)


def _taking(name: str) -> Callable[[Path], None]:
    from conrepair.formats.converters.all_converters import converter
    from conrepair.formats.models.model import Model
    from conrepair_lab.campaigns.narrowing import NarrowingTarget, target

    if name == "tvm":
        from conrepair.formats.tvm.import_onnx import import_model
        from conrepair.formats.tvm.options import TvmOptions

        def imported(path: Path) -> None:
            import_model(Model(framework="onnx", path=str(path), sha256=""), 1, TvmOptions())

        return imported
    steps = (converter(name),)
    if steps[0].source != "onnx":
        steps = (*target(steps[0].source).steps, *steps)
    asked = NarrowingTarget(name, steps)

    def converted(path: Path) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asked.convert(path, Path(folder))

    return converted


def _refusal(take: Callable[[Path], None], path: str) -> str | None:
    try:
        take(Path(path))
    except Exception as error:  # noqa: BLE001 (of whatever class: it's counted)
        return f"{type(error).__name__}: {error}"
    return None


def _count(counting: coverage.Coverage, number: int, folder: Path) -> None:
    counting.stop()
    counting.save()
    report = folder / "report.json"
    counting.json_report(outfile=str(report), ignore_errors=True)
    totals = json.loads(report.read_text(encoding="utf-8"))["totals"]
    names = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    _note(folder, {"networks": number, **{name: totals[name] for name in names}})
    counting.start()


def _note(folder: Path, line: dict[str, Any]) -> None:
    with (folder / FOUND).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
