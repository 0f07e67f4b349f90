"""What tests run with in all folders: paths to tests/support and benchmarks, in workers too; hypothesis's profile."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import hypothesis
import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: its threads spin while they wait for one another

_ROOT = Path(__file__).parent
_SUPPORT = _ROOT / "tests" / "support"
for _folder in map(str, (_ROOT, _SUPPORT)):
    if _folder not in sys.path:
        sys.path.insert(0, _folder)

import asked_once  # noqa: E402 (found by the path above)
import dealing  # noqa: E402 (found by the path above)
import torch_once  # noqa: E402
from durations import Durations  # noqa: E402

from benchmarks.common.here_lane import HereLane  # noqa: E402

os.environ["CONREPAIR_CACHE"] = ""  # nobody's cache is touched, and no test answered by another
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as in workers
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # as in workers
hypothesis.settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # that times a machine that has other work
)
hypothesis.settings.register_profile("thorough", max_examples=1000, deadline=None, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("CONREPAIR_HYPOTHESIS", "fixed"))

# Frameworks and tests are millions of objects, which Python would look through again and again: a fifth of the time.
gc.set_threshold(100_000, 20, 100)
_AT_ONCE = 300  # modules that no test brings along, but a framework
_modules = [0]  # that were there when they were set aside last


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Durations(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        dealing.longest_first(items, dealing.seconds_of(dealing.KEPT))


def pytest_runtest_setup() -> None:
    torch_once.remember()
    asked_once.remember()
    _set_modules_aside()


def pytest_unconfigure() -> None:
    gc.unfreeze()  # or libraries of C++ report at the end what was never freed


def _set_modules_aside() -> None:
    """Keep the collector from what's there once a framework is: Keras asks for full collections."""
    if len(sys.modules) > _AT_ONCE + _modules[0]:
        gc.collect()
        gc.freeze()
        _modules[0] = len(sys.modules)


@pytest.fixture(autouse=True)
def _jobs_run_here(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do jobs in this process, but for tests of what only worker processes can show."""
    if request.node.get_closest_marker("workers") is None:
        monkeypatch.setattr("conrepair.ground.runtime.processes.workers.Lane", HereLane)
