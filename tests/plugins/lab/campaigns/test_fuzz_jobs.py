"""What workers do for campaigns, one job at a time, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz_cases import case, compared_by_halves, padded_pool, right
from new_process import in_new_process

from conrepair.formats.models.model import Model
from conrepair.formats.models.runnable import Runnable
from conrepair.ground.intake.data import write_arrays
from conrepair.ground.runtime.typed import plain, typed
from conrepair_lab.campaigns import fuzz_jobs
from conrepair_lab.campaigns.fuzz_jobs import (
    CASE,
    TOLD,
    Made,
    _plainly,
    case_for,
    fuzz_recheck,
    fuzz_reduce,
    fuzz_try,
    read_network,
    threaded,
)
from conrepair_lab.campaigns.generate_jobs import AT
from conrepair_lab.cases.case import Case, read, written
from conrepair_lab.cases.sizes import SIZES, open_sizes
from conrepair_lab.fuzz.looking import SUSPECT, Looked, look
from conrepair_lab.fuzz.suspicion import Suspicion
from conrepair_lab.report.fuzz.folder import REPRODUCE
from conrepair_lab.systems.ort import SYSTEM as ORT
from conrepair_lab.systems.registry import SYSTEMS, entry
from conrepair_lab.systems.system import Setting

LEAST = np.array(np.iinfo(np.int32).min, np.int32)
CRASHING = case("g (int32 x, int32 z) => (int32 y) { y = Div (x, z) }", x=LEAST, z=np.array(-1, np.int32))


def network(made: Case, folder: Path, answers: Any = None) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(made.network)
    write_arrays(folder / "inputs.npz", made.inputs)
    if answers is not None:
        write_arrays(folder / "outputs.npz", answers)
    return folder


def suspicion_of(made: Case, name: str, folder: Path) -> Suspicion:
    asked = entry(name)
    found = look(made, asked.runs, asked.chosen, folder).suspicion
    assert found is not None
    return found


def reduction(made: Case, name: str, suspicion: Suspicion, folder: Path, others: tuple[str, ...] = ()) -> Made:
    where = network(made, folder / "network")
    (folder / "job").mkdir()
    return fuzz_reduce(
        folder / "job", entry=name, network=where, suspicion=suspicion, seconds=10, longest=10, others=others
    )


def test_a_network_is_read_with_its_answers_where_they_are(tmp_path: Path) -> None:
    made = right()
    found, answers = read_network(network(made, tmp_path / "a"))
    assert (found.key, answers) == (made.key, None)
    _, answers = read_network(network(made, tmp_path / "b", {"y": np.ones(2, np.float32)}))
    assert answers is not None
    assert answers["y"].tolist() == [1, 1]
    alone = case("g () => (float y) { y = Constant <value_float = 1.5> () }")
    found, _ = read_network(network(alone, tmp_path / "c"))
    assert not found.inputs


def test_networks_are_tried_one_after_the_other_and_each_is_told(tmp_path: Path) -> None:
    made = [
        right(),
        compared_by_halves(),
        case("g (double[1] x) => (double[1] y) { y = Softsign (x) }", x=np.ones(1)),
    ]
    folders = [network(item, tmp_path / str(place)) for place, item in enumerate(made)]
    (tmp_path / "job").mkdir()
    fuzz_try(tmp_path / "job", "ort-none", tuple(folders), 30, 0.0)
    told = [typed(Looked, json.loads(line)) for line in (tmp_path / "job" / TOLD).read_text().splitlines()]
    assert [item.verdict for item in told] == ["right", "suspect", "refused"]
    assert json.loads((tmp_path / "job" / AT).read_text()) == {"place": 2, "judging": True, "odd": 0}


class Losing(type(ORT)):  # type: ignore[misc]
    """ONNX Runtime, with another number wherever it's NaN."""

    name = "losing"

    def open(self, model: Model, setting: Setting, folder: Path) -> Runnable:
        opened = super().open(model, setting, folder)
        run = opened._run
        opened._run = lambda feeds: {name: np.nan_to_num(array) for name, array in run(feeds).items()}
        return opened


def test_one_build_is_fed_odd_numbers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SYSTEMS, "losing", Losing())
    text = "g (float[8] x) => (float[8] y) { y = Neg (x) }"
    made = [case(text, x=np.full(8, place, np.float32)) for place in range(16)]
    folders = [network(item, tmp_path / str(place)) for place, item in enumerate(made)]
    found = []
    for special in (False, True):
        (tmp_path / f"job-{special}").mkdir()
        fuzz_try(tmp_path / f"job-{special}", "losing-all", tuple(folders), 30, 0.0, special=special)
        lines = (tmp_path / f"job-{special}" / TOLD).read_text().splitlines()
        found.append([typed(Looked, json.loads(line)) for line in lines])
    plain, odd = found
    assert {(item.verdict, item.odd) for item in plain} == {("right", 0)}
    suspect = [item.suspicion.kind for item in odd if item.odd and item.suspicion is not None]
    assert set(suspect) <= {"not finite", "numbers"}
    fed = [[case_for(where, entry("losing-all"), 0.0, odd=odd)[0].inputs["x"] for odd in (0, 1)] for where in folders]
    assert all(np.isfinite(usual).all() for usual, _ in fed)
    assert sum(not np.isfinite(odd).all() for _, odd in fed) >= len(suspect) > 1


def test_the_plain_setting_is_asked_where_another_is_suspect(tmp_path: Path) -> None:
    found = []
    for name, made in (("ort-all", padded_pool()), ("ort-none", compared_by_halves())):
        (tmp_path / f"{name}-job").mkdir()
        fuzz_try(tmp_path / f"{name}-job", name, (network(made, tmp_path / name),), 30, 0.0)
        found.append(typed(Looked, json.loads((tmp_path / f"{name}-job" / TOLD).read_text())))
    assert [(item.verdict, item.plainly) for item in found] == [("suspect", False), ("suspect", True)]


def test_another_release_of_a_converter_has_no_plain_setting(tmp_path: Path) -> None:
    asked = entry("convert-onnxoptimizer@0.4.2")
    assert _plainly(right(), Suspicion("numbers", "answers"), asked, tmp_path) is None


@pytest.mark.parametrize(
    ("name", "size", "varied", "wanted"),
    [
        ("ort-all", 10_000, 0.0, True),
        ("ort-all", 2, 0.0, False),
        ("ort-all", 2, 1.0, True),
        ("tensorflow-xla", 10_000, 1.0, False),  # its threads are a process's
        ("convert-onnxslim", 10_000, 0.0, True),  # its threads are ONNX Runtime's
        ("convert-import", 10_000, 1.0, False),
    ],
)
def test_large_networks_and_some_others_run_with_other_threads(
    name: str, size: int, varied: float, wanted: bool
) -> None:
    assert threaded(right(np.zeros(size)), entry(name), varied) is wanted


def test_sizes_that_are_open_are_varied_where_one_build_serves_them(tmp_path: Path) -> None:
    made = case("g (float[batch, 2] x) => (float[batch, 2] y) { y = Relu (x) }", x=np.ones((3, 2), np.float32))
    folder = network(made, tmp_path / "a")
    drawn, _ = case_for(folder, entry("ort-all"), 0.0)
    assert drawn.options[SIZES]["batch"] in {1, 4, 9}
    assert open_sizes(drawn) == {"batch": 3}
    plain, _ = case_for(folder, entry("tensorflow-xla"), 0.0)
    assert not plain.options
    assert not open_sizes(plain)
    folder = network(right(), tmp_path / "b")
    assert case_for(folder, entry("ort-all"), 0.0)[0].key == right().key


def test_a_network_that_takes_no_other_size_stays_as_it_is(tmp_path: Path) -> None:
    text = "g (float[batch, 2] x) => (float[batch, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}> { y = Add (x, w) }"
    folder = network(case(text, x=np.ones((3, 2), np.float32)), tmp_path / "a")
    further = {case_for(folder, entry(name), 0.0)[0].options.get(SIZES, {}).get("batch") for name in SYSTEMS}
    assert further <= {None, 1}


def test_a_kernels_finding_has_all_that_is_written(tmp_path: Path) -> None:
    told = reduction(
        compared_by_halves(),
        "ort-none",
        suspicion_of(compared_by_halves(), "ort-none", tmp_path),
        tmp_path,
        ("ort-all",),
    )
    assert told.verdict == SUSPECT
    assert (found := told.finding) is not None
    assert (found.operators, found.also) == (("Min",), ("ort-all",))
    assert read(tmp_path / "job" / CASE).key == found.case
    assert (tmp_path / "job" / REPRODUCE).is_file()
    assert [(item.release, item.verdict) for item in found.shown] == [("", "there")]
    assert "onnxruntime" in found.versions
    assert typed(Made, plain(told)) == told


def test_who_does_not_show_it_is_not_named(tmp_path: Path) -> None:
    suspicion = suspicion_of(padded_pool(), "ort-all", tmp_path)
    told = reduction(padded_pool(), "ort-all", suspicion, tmp_path, ("ort-none", "ort-basic"))
    assert told.finding is not None
    assert (told.verdict, told.finding.also) == (SUSPECT, ("ort-basic",))


def test_what_does_not_stand_has_no_case(tmp_path: Path) -> None:
    told = reduction(right(), "ort-none", Suspicion("numbers", "answers"), tmp_path)
    assert (told.verdict, told.finding) == ("gone", None)
    assert not (tmp_path / "job" / CASE).exists()


def crash_reduced(folder: Path) -> None:
    fuzz_jobs.shown = lambda *_, **__: None  # a process of its own, which test_shown.py starts
    crash = Suspicion("crash", "process", "SIGFPE", "the process ends by SIGFPE")
    for others in ((), ("ort-all",)):
        (own := folder / str(len(others))).mkdir()
        told = reduction(CRASHING, "ort-none", crash, own, others)
        assert told.finding is not None
        assert (told.verdict, told.finding.operators) == (SUSPECT, ("Div",))
        assert (own / "job" / CASE).is_dir()


def test_making_a_finding_of_a_crash_does_not_crash(tmp_path: Path) -> None:
    in_new_process(crash_reduced, tmp_path)


@pytest.mark.parametrize(
    ("made", "name", "verdict", "words"),
    [
        (compared_by_halves(), "ort-none", "there", "numbers: y"),
        (padded_pool(), "ort-all", "there", "numbers: y"),
        (padded_pool(), "ort-none", "gone", "right"),
        (right(), "ort-none", "gone", "right"),
        (
            case("g (double[1] x) => (double[1] y) { y = Softsign (x) }", x=np.ones(1)),
            "ort-none",
            "unknown",
            "refused",
        ),
        (
            case("g (float[1] x) => (float[1] y) <int64[1] i = {7}> { y = Gather (x, i) }", x=np.ones(1, np.float32)),
            "ort-none",
            "unknown",
            "suspect: exception",
        ),
    ],
)
def test_a_finding_is_there_gone_or_nobody_knows(
    made: Case, name: str, verdict: str, words: str, tmp_path: Path
) -> None:
    written(made, tmp_path / "case")
    found, said, ran = fuzz_recheck(tmp_path, name, tmp_path / "case", made.key, Suspicion("numbers", "answers"))
    assert (found, ran) == (verdict, None)
    assert words in said
