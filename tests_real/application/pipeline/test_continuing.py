"""An audit that is killed at any moment continues where it stopped."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path
from typing import Any

import killing
import pytest

NETS = """
import torch
from torch import nn


def build(width):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, stride=2, padding=1), nn.BatchNorm2d(width), nn.ReLU6(),
        nn.Conv2d(width, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5),
    )
"""
ROUTES = [{"via": ["torch-onnx-script", "onnx2torch"]}, {"via": ["torch-onnx-dynamo"]}]
ALL = ["build", *["convert"] * 3, "draw_inputs", *["execute"] * 5]  # that a first run makes of one model


def config(folder: Path, count: int, **changes: Any) -> Path:
    """An audit of `count` small networks, in a folder of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "killednets.py").write_text(NETS)
    model = {
        "factory": "killednets:build",
        "inputs": [{"shape": ["batch", 3, 20, 14]}],
        "initialize": "variance-preserving",
        "conversions": ROUTES,
    }
    value = {
        "models": [model | {"name": f"net{index}", "kwargs": {"width": 5 + index}} for index in range(count)],
        "dataset": {"synthetic": {"samples": 6}},
        "batch_size": 4,
    } | changes
    path = folder / "config.json"
    path.write_text(json.dumps(value))
    return path


def result(folder: Path) -> Any:
    return killing.report_rows(folder / "generated" / "audit")


def check_after_a_kill(folder: Path, before: killing.Stamps) -> killing.Stamps:
    """Everything in the store is whole, and nothing that was finished before was done again."""
    store = folder / "generated" / "store"
    assert killing.damaged(store) == []
    after = killing.entries(store)
    assert {name: after.get(name) for name in before} == before
    return after


def check_the_end(folder: Path, process: subprocess.Popen[str], before: killing.Stamps, expected: Any) -> None:
    output = killing.finish(process)
    assert process.returncode == 0, output
    check_after_a_kill(folder, before)
    assert killing.leftovers(folder / "generated") == []
    assert result(folder) == expected


def test_killed_once_then_continued(tmp_path: Path) -> None:
    """Only the main process is killed, when something was just converted and the next job has begun."""
    path = config(tmp_path, 1)
    store = tmp_path / "generated" / "store"
    process = killing.start(path)
    killing.wait_until(lambda: any(name.startswith("convert") for name in killing.entries(store)))
    killing.kill(process, everybody=False)
    seen = check_after_a_kill(tmp_path, {})
    output = killing.finish(again := killing.start(path))
    assert again.returncode == 0, output
    assert len(check_after_a_kill(tmp_path, seen)) > len(seen)
    assert killing.leftovers(tmp_path / "generated") == []
    verdicts = [row["verdict"] for row in result(tmp_path)]
    assert verdicts == [None, "equivalent", "equivalent", "equivalent"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_three_times_then_continued(tmp_path: Path) -> None:
    """When something was just built, when something was just converted, and when something was just executed."""
    whole = config(tmp_path / "whole", 1)
    killing.finish(killing.start(whole))
    expected = result(whole.parent)
    path = config(tmp_path / "killed", 1)
    store = path.parent / "generated" / "store"
    seen: killing.Stamps = {}
    for kind, everybody in (("build", False), ("convert", True), ("execute", False)):
        process = killing.start(path)
        killing.wait_until(lambda kind=kind: any(name.startswith(kind) for name in killing.entries(store)))
        killing.kill(process, everybody=everybody)
        seen = check_after_a_kill(path.parent, seen)
        time.sleep(1)
        assert killing.entries(store) == seen, "a worker that outlived its run wrote into the store"
    assert len(seen) < len(killing.entries(whole.parent / "generated" / "store"))
    check_the_end(path.parent, killing.start(path), seen, expected)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_twenty_moments(tmp_path: Path) -> None:
    """Seeded moments over the whole run; each kill is followed by a run that continues, or is killed in its turn."""
    whole = config(tmp_path / "whole", 3)
    started = time.monotonic()
    killing.finish(killing.start(whole))
    duration = time.monotonic() - started
    expected = result(whole.parent)
    path = config(tmp_path / "killed", 3)
    store = path.parent / "generated" / "store"
    generator = random.Random(0)
    seen: killing.Stamps = {}
    kills = finished = 0
    while kills < 20:
        process = killing.start(path)
        try:
            process.wait(timeout=duration * (kills % 10 + generator.random()) / 10)
        except subprocess.TimeoutExpired:
            killing.kill(process, everybody=bool(generator.getrandbits(1)))
            seen = check_after_a_kill(path.parent, seen)
            kills += 1
            continue
        check_the_end(path.parent, process, seen, expected)
        finished += 1
        path = config(tmp_path / f"killed{finished}", 3)
        store = path.parent / "generated" / "store"
        seen = {}
    seen = killing.entries(store)
    check_the_end(path.parent, killing.start(path), seen, expected)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_audits_at_once_share_a_store(tmp_path: Path) -> None:
    whole = config(tmp_path / "whole", 2)
    killing.finish(killing.start(whole))
    expected = result(whole.parent)
    config(tmp_path / "shared", 2)
    paths = [tmp_path / "shared" / f"{name}.json" for name in ("one", "two")]
    for path in paths:
        value = json.loads((tmp_path / "shared" / "config.json").read_text())
        path.write_text(json.dumps(value | {"name": path.stem}))
    processes = [killing.start(path) for path in paths]
    outputs = [killing.finish(process) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    generated = tmp_path / "shared" / "generated"
    assert killing.damaged(generated / "store") == []
    assert killing.leftovers(generated) == []
    assert [killing.report_rows(generated / name) for name in ("one", "two")] == [expected, expected]
    count = len(killing.entries(whole.parent / "generated" / "store"))
    assert len(killing.entries(generated / "store")) == count


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_is_stale_is_done_again_and_nothing_else(tmp_path: Path) -> None:
    """Other weights, another option, a damaged file."""
    path = config(tmp_path, 1)
    store = tmp_path / "generated" / "store"

    def run(**changes: Any) -> tuple[killing.Stamps, list[str]]:
        """The entries, and kinds of those that this run made."""
        before = killing.entries(store)
        value = json.loads(path.read_text())
        value["models"][0] |= changes
        path.write_text(json.dumps(value))
        output = killing.finish(process := killing.start(path))
        assert process.returncode == 0, output
        after = killing.entries(store)
        made = sorted(name.partition("-")[0] for name in after if after[name] != before.get(name))
        return after, made

    first, made = run()
    assert made == ALL
    assert run() == (first, [])
    options = {"torch-onnx-script": {"opset": 13}}
    _, made = run(conversions=[ROUTES[0] | {"options": options}, ROUTES[1]])
    assert made.count("convert") == 2, "the step and the one behind it"
    assert set(made) == {"convert", "execute"}, "what has the same bytes as before isn't run again"
    for model in store.glob("convert-*/model.onnx"):
        model.write_bytes(model.read_bytes()[:-1] + b"?")
    second, made = run()
    assert killing.damaged(store) != [], "an entry that nobody asks for isn't looked at"
    assert made.count("convert") == 2
    assert first.keys() <= second.keys()
    _, made = run(seed=1)
    assert made == ALL
    (tmp_path / "killednets.py").write_text(NETS.replace("ReLU6", "ReLU"))
    _, made = run()
    assert made == ALL


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_conversion_leaves_no_half_output(tmp_path: Path) -> None:
    import small_models as small

    source = small.onnx_convnet(tmp_path / "net.onnx", opset=13)
    command = ["convert", str(source), "--to", "torch", "-o", str(tmp_path / "net.pt2")]
    started = time.monotonic()
    killing.finish(killing.start(tmp_path, *command))
    duration = time.monotonic() - started
    (made,) = (path for path in tmp_path.iterdir() if path.suffix in {".pt", ".pt2"})
    made.unlink()
    for moment in (0.3, 0.6, 0.8, 0.9, 0.95, 1.0):
        process = killing.start(tmp_path, *command)
        try:
            process.wait(timeout=moment * duration)
        except subprocess.TimeoutExpired:
            killing.kill(process, everybody=False)
        if made.exists():
            assert killing.finish(killing.start(tmp_path, "inspect", str(made)))
            made.unlink()
    output = killing.finish(process := killing.start(tmp_path, *command))
    assert process.returncode == 0, output
    listed = f".{made.name}.conrepair-files.txt"  # what was written, so that it may be replaced
    assert sorted(path.name for path in tmp_path.iterdir()) == [listed, "net.onnx", made.name]
