"""What random networks find: `python -m benchmarks.generate.first_hour TARGET [--networks 2000] [-o FOLDER]`.

Each network is computed by ONNX Runtime as it stands, handed to a target, and what comes of it is computed with the
same inputs. Targets: ONNX Runtime's optimizer, onnxslim, onnxsim, and our converters by their names (onnx-keras,
onnx-torch, ...). What differs, crashes or hangs is listed, and kept with -o: the model, its inputs, both outputs.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import re
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.generate.elsewhere import Elsewhere, EndedError
from conrepair.ground.runtime.files.whole import write_json
from conrepair_lab.generate.generated import BLOCK, block, generated
from conrepair_lab.generate.judging import difference
from conrepair_lab.generate.networks import GeneratedNetwork
from conrepair_lab.generate.onnx_form import RefusedError, accepted, run
from conrepair_lab.generate.support import Probed
from conrepair_lab.generate.wishes import Wishes

_SECONDS = 60

Arrays = dict[str, np.ndarray[Any, Any]]


@cache
def _support(opset: int) -> Probed:
    return Probed(opset, accepted)


@cache
def _block(nodes: int, opset: int, seed: int, number: int) -> list[GeneratedNetwork | None]:
    found = block(Wishes(nodes=nodes, opset=opset), seed, number, _support(opset))
    return [network if isinstance(network, GeneratedNetwork) else None for network in found]


def _simplified(target: str, model: onnx.ModelProto) -> onnx.ModelProto:
    if target == "onnxslim":
        import onnxslim

        return onnxslim.slim(model)
    import onnxsim

    return onnxsim.simplify(model)[0]


def _converted(target: str, model: onnx.ModelProto, feeds: Arrays) -> Arrays:
    import conrepair

    names = [output.name for output in model.graph.output]
    with tempfile.TemporaryDirectory() as folder:
        to = target.split("-")[1]
        found = conrepair.convert(
            model, to=to, via=(target,), output=f"{folder}/m", check=False, mend=False, in_process=True
        )
        results = _called(Path(found.model), to, [(item.name, feeds[item.name]) for item in model.graph.input])
    return dict(zip(names, results, strict=True))


def _called(path: Path, to: str, feeds: list[tuple[str, np.ndarray[Any, Any]]]) -> list[np.ndarray[Any, Any]]:
    """What a converted model answers; one that has its inputs or outputs in another order is a finding, too."""
    if to == "keras":
        import keras

        loaded = keras.models.load_model(path)
        by_name = {item.name: item for item in loaded.inputs}
        given = [dict(feeds)[name] if name in dict(feeds) else feeds[place][1] for place, name in enumerate(by_name)]
        answer = loaded(given)
        return [
            np.asarray(keras.ops.convert_to_numpy(item))
            for item in (answer if isinstance(answer, list) else [answer])
        ]
    import torch

    module = torch.export.load(path).module()
    answer = module(*(torch.from_numpy(array) for _, array in feeds))
    return [item.detach().numpy() for item in (answer if isinstance(answer, tuple | list) else [answer])]


def prepare(target: str, nodes: int, opset: int, seed: int, index: int) -> None:
    """Make the networks of a block, and import what a target needs: neither is the target's time."""
    _block(nodes, opset, seed, index // BLOCK)
    if target in {"onnxslim", "onnxsim"}:
        importlib.import_module(target)


def outcome(target: str, nodes: int, opset: int, seed: int, index: int, output: str | None) -> tuple[str, str]:
    """What becomes of one network: a word, and a text."""
    network = _block(nodes, opset, seed, index // BLOCK)[index % BLOCK]
    if network is None:
        return "none", ""
    model, feeds, plain = network.model, network.inputs, network.answers
    names = network.draft.outputs()
    found: Arrays = {}
    try:
        if target == "onnxruntime":
            found = run(model, feeds, names, optimized=True)
        elif target in {"onnxslim", "onnxsim"}:
            simplified = _simplified(target, model)
            found = run(simplified, {item.name: feeds[item.name] for item in simplified.graph.input}, names)
        else:
            found = _converted(target, model, feeds)
        word, text = _compared(plain, found, network.coarsest)
    except RefusedError as error:
        word, text = "refused", str(error)
    except Exception as error:  # noqa: BLE001 (what a target raises is what's looked for)
        word, text = "error", f"{type(error).__name__}: {error}"
    if output is not None and word != "same":
        keep(target, nodes, opset, seed, index, output, word, text, found)
    return word, text


def keep(
    target: str, nodes: int, opset: int, seed: int, index: int, output: str, word: str, text: str, found: Arrays
) -> None:
    """Keep a network that a target gets wrong, with what the target computed."""
    network = _block(nodes, opset, seed, index // BLOCK)[index % BLOCK]
    if network is None:
        return
    folder = Path(output) / f"{target}-{seed}-{index}"
    folder.mkdir(parents=True, exist_ok=True)
    generated(network, seed, index).write(folder)
    np.savez(folder / "found.npz", **found)
    write_json(folder / "finding.json", {"target": target, "word": word, "text": text})


def _compared(plain: Arrays, found: Arrays, coarsest: str) -> tuple[str, str]:
    if missing := plain.keys() - found.keys():
        return "differs", f"{len(missing)} outputs are missing"
    wrong = difference(plain, found, coarsest)
    if wrong is None:
        return "same", ""
    array, other = plain[wrong.output], found[wrong.output]
    if (array.shape, array.dtype) != (other.shape, other.dtype):
        return "differs", f"{array.dtype} {array.shape} became {other.dtype} {other.shape}"
    return "differs", f"{array.dtype} by {wrong.largest}"


def main() -> None:
    """Try networks, one by one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--networks", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--opset", type=int, default=18)
    parser.add_argument("-o", "--output")
    arguments = parser.parse_args()
    fixed = (arguments.target, arguments.nodes, arguments.opset, arguments.seed)
    words: collections.Counter[str] = collections.Counter()
    texts: dict[str, list[int]] = {}
    elsewhere, fresh = Elsewhere(), True
    for index in range(arguments.networks):
        if index % BLOCK == 0 or fresh:
            elsewhere.call(None, prepare, *fixed, index)
            fresh = False
        try:
            word, text = elsewhere.call(_SECONDS, outcome, *fixed, index, arguments.output)
        except EndedError as error:
            word, text, fresh = str(error), "", True
            if arguments.output is not None:
                elsewhere.call(None, keep, *fixed, index, arguments.output, word, text, {})
        words[word] += 1
        if word not in {"same", "none"}:
            short = re.sub(r"'?\b[nt]\d+\b'?|\d+(\.\d+)?(e[+-]\d+)?", "#", text)[:140]
            texts.setdefault(f"{word}: {short}", []).append(index)
    print(f"{arguments.target}: {dict(words.most_common())}")
    for text, indices in sorted(texts.items(), key=lambda item: -len(item[1]))[:40]:
        print(f"  {len(indices):4} {text!r} e.g. {indices[:4]}")


if __name__ == "__main__":
    main()
