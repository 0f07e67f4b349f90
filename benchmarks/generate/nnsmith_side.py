"""NNSmith's half of a comparison, run by the Python that has NNSmith: `python nnsmith_side.py FOLDER [WORD ...]`.

Asked by lines of JSON on standard input, each answered by one: so many networks of so many operators from a seed,
and whether they're written to a folder as ONNX, and run. Of each it says the processor seconds that making it took,
values included, and, where it's run, those of the whole: the export, two levels of ONNX Runtime, the comparison.
With words it's NNSmith's own campaign, `nnsmith.fuzz WORD ...`, as it is but for what it needs to run at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

__all__: list[str] = []

_MILLISECONDS = 10_000
"""That a network may take: NNSmith's own default."""

_TRIES = 20

_MEMORY = 6 << 30
"""Bytes that its process may have: some of its networks have weights of gigabytes."""


def main(folder: Path, words: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    os.environ["XDG_CACHE_HOME"] = str(folder.resolve() / "cache")  # which element types it found that it can export
    if words:
        _Side()
        os.chdir(folder)
        from nnsmith.cli import fuzz

        sys.argv[1:] = words
        fuzz.main()
        return
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    side = _Side()
    print(json.dumps(side.versions()), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(side.made(**json.loads(line))), file=answers, flush=True)


class _Side:
    def __init__(self) -> None:
        import onnx
        import torch

        onnx._serialize = lambda model: model.SerializeToString()  # of older versions
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        export = torch.onnx.export
        # The newer exporter refuses every network of NNSmith's.
        torch.onnx.export = lambda *given, **named: export(*given, **named, dynamo=False)  # type: ignore[assignment]
        from nnsmith.abstract.extension import activate_ext
        from nnsmith.materialize import Model

        self._onnx = Model.init("onnx", backend_target="cpu")
        self._onnx.add_seed_setter()
        self._operators = {vulnerable: self._usable(vulnerable=vulnerable) for vulnerable in (False, True)}
        activate_ext(opset=self._operators[True])

    def _usable(self, *, vulnerable: bool) -> list[Any]:
        """Operators that it can export and ONNX Runtime takes; finding it out ends in an error for many seeds."""
        from nnsmith.backends import BackendFactory
        from nnsmith.error import InternalError
        from nnsmith.narrow_spec import auto_opset

        factory = BackendFactory.init("onnxruntime", target="cpu", optmax=True)
        for seed in range(_TRIES):
            random.seed(seed)
            with contextlib.suppress(InternalError):
                return list(auto_opset(self._onnx, factory, vulops=vulnerable))
        raise SystemExit(f"NNSmith didn't find out what it can export, in {_TRIES} tries.")

    def versions(self) -> dict[str, Any]:
        import importlib.metadata

        names = ("nnsmith", "torch", "onnx", "onnxruntime", "z3-solver", "numpy")
        versions = {name: importlib.metadata.version(name) for name in names}
        return {"versions": versions, "operators": [len(own) for own in self._operators.values()]}

    def made(
        self, nodes: int, seeds: list[int], *, vulnerable: bool, folder: str | None, run: bool
    ) -> list[dict[str, Any]]:
        found = []
        for seed in seeds:
            started = time.process_time()
            try:
                model, oracle = self._network(nodes, seed, vulnerable)
            except Exception as error:  # noqa: BLE001 (of any class: it's counted)
                found.append({"failed": _words(error), "seconds": time.process_time() - started})
                continue
            row: dict[str, Any] = {
                "seconds": time.process_time() - started,
                "nodes": model.torch_model.ir.n_compute_inst(),
            }
            row["finite"] = all(_finite(array) for array in oracle.output.values())
            if folder is not None or run:
                row |= self._exported(model, oracle, Path(folder) / f"{seed}.onnx" if folder else None, run=run)
            row["whole"] = time.process_time() - started
            found.append(row)
        return found

    def _network(self, nodes: int, seed: int, vulnerable: bool) -> Any:
        from nnsmith.graph_gen import model_gen

        made = model_gen(
            opset=self._operators[vulnerable],
            method="symbolic-cinit",
            seed=seed,
            max_elem_per_tensor=65536,
            max_nodes=nodes,
            timeout_ms=_MILLISECONDS,
            rank_choices=None,
            dtype_choices=None,
        )
        model = self._onnx.from_gir(made.make_concrete())
        self._onnx.PTType.refine_weights(model)  # the search for values, without the export
        return model, model.make_oracle()

    def _exported(self, model: Any, oracle: Any, path: Path | None, *, run: bool) -> dict[str, Any]:
        try:
            proto = model.get_onnx_from_torch()
        except Exception as error:  # noqa: BLE001 (as above)
            return {"failed": _words(error)}
        if path is not None:
            path.write_bytes(proto.SerializeToString())
            _write_inputs(path.with_suffix(".npz"), proto, oracle.input)
        return {"ran": _ran(proto, oracle.input)} if run else {}


def _write_inputs(path: Path, proto: Any, feeds: dict[str, Any]) -> None:
    import numpy as np

    np.savez(path, **{item.name: feeds[item.name] for item in proto.graph.input})


def _ran(proto: Any, feeds: dict[str, Any]) -> bool:
    import numpy as np
    import onnxruntime

    results = []
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL"):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(
                proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            read = {item.name for item in session.get_inputs()}
            results.append(session.run(None, {name: array for name, array in feeds.items() if name in read}))
        except Exception:  # noqa: BLE001 (as above)
            return False
    return all(np.allclose(one, other, 1e-2, 1e-3, equal_nan=True) for one, other in zip(*results, strict=True))


def _finite(array: Any) -> bool:
    import numpy as np

    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"[:200]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
