"""Workers that are this process: for tests and benchmarks that ask for nothing that only a process can show."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.processes import workers
from conrepair.ground.runtime.processes.worker_process import run_job
from conrepair.ground.runtime.user_modules import offer_folders

__all__ = ["HereLane"]

_ROOT = Path(__file__).parents[2]
_TORCH_SEED = 67280421310721  # of a process that has set none


@dataclass
class HereLane(workers.Lane):
    """A lane whose worker is this process, with the state that a process of its own would have.

    What its jobs leave behind in frameworks (numbers in Keras's names, PyTorch's random numbers), in the search path
    and among a user's modules is there for its next job, and for nobody else.
    """

    keras_names: Any = field(default_factory=threading.local)
    torch_random: Any = None
    own_modules: dict[str, Any] = field(default_factory=dict)

    def schedule(self, request: Sequence[Any], timeout: float, temporary: Path) -> Any:
        """Do a job; no time ends it."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        *job, _ = json.loads(json.dumps(request))  # this process knows the hashes
        with self._state():
            future.set_result(run_job(*job, self.setup["jobs"]))
        return future

    def close(self) -> None:
        """Forget what jobs have left behind."""
        self.keras_names, self.torch_random, self.own_modules = threading.local(), None, {}

    @contextlib.contextmanager
    def _state(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            # `_run` sends the descriptors to a file; a test's capture replaces Python's streams too.
            stack.enter_context(contextlib.redirect_stdout(sys.__stdout__))
            stack.enter_context(contextlib.redirect_stderr(sys.__stderr__))
            stack.enter_context(contextlib.chdir(Path.cwd()))
            stack.callback(_restore_environment, dict(os.environ))
            stack.enter_context(self._modules())
            stack.enter_context(self._keras())
            stack.enter_context(self._torch())
            yield

    @contextlib.contextmanager
    def _modules(self) -> Iterator[None]:
        before, path = set(sys.modules), list(sys.path)
        offer_folders(self.setup["modules"])
        sys.modules.update(self.own_modules)
        try:
            yield
        finally:
            sys.path[:] = path
            offer_folders([])
            for name in set(sys.modules) - before:
                if _is_users(getattr(sys.modules[name], "__file__", None) or ""):
                    self.own_modules[name] = sys.modules.pop(name)
            sys.path_importer_cache.clear()

    @contextlib.contextmanager
    def _keras(self) -> Iterator[None]:
        if "keras" not in sys.modules:
            yield
            return
        from keras.src.backend.common import global_state

        before, global_state.GLOBAL_STATE_TRACKER = global_state.GLOBAL_STATE_TRACKER, self.keras_names
        try:
            yield
        finally:
            self.keras_names, global_state.GLOBAL_STATE_TRACKER = global_state.GLOBAL_STATE_TRACKER, before

    @contextlib.contextmanager
    def _torch(self) -> Iterator[None]:
        if "torch" not in sys.modules:
            yield
            return
        import torch

        before = torch.get_rng_state()
        if self.torch_random is None:
            torch.manual_seed(_TORCH_SEED)
        else:
            torch.set_rng_state(self.torch_random)
        try:
            yield
        finally:
            self.torch_random = torch.get_rng_state()
            torch.set_rng_state(before)


def _is_users(file: str) -> bool:
    """Whether a module is a model's own, and no library of an environment that lies among temporary files itself."""
    return file.startswith(tempfile.gettempdir()) and not file.startswith((sys.prefix, str(_ROOT)))


def _restore_environment(before: dict[str, str]) -> None:
    if dict(os.environ) != before:
        os.environ.clear()
        os.environ.update(before)
