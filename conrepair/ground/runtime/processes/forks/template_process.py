"""A process that imports what jobs need, and of which workers are forked: they have it from the start.

It's confined as they are, but that it sets groups of processes, and runs nothing of a model. It has a single thread:
a fork copies no other, and locks that those held stay locked. Where a library has started some, a worker is a fresh
interpreter.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from conrepair.ground.runtime.processes.confinement import confine
from conrepair.ground.runtime.processes.reach import FORKING
from conrepair.ground.runtime.processes.worker_process import begin, prepare_libraries

LONGEST = 1 << 17  # bytes of a message
_THREADS = Path("/proc/self/task")


def fork_workers(channel: int) -> None:
    """Fork a worker whenever one is asked for, and tell how each ended, until nobody is left to ask.

    Messages are JSON. The first has "folders" (as of `confine`) and "imports" (names of modules). The others have the
    "number" of a worker, and either "signal", which is sent to its supervisor, or "environment" (variables) and
    "program" (of a fresh interpreter's), with four descriptors: the pipes of its requests and answers, its log, and
    where its exit code is written, as of `subprocess.Popen.returncode`.

    Args:
        channel: Descriptor of a connected socket of packets.
    """
    said, told = os.pipe()
    os.set_blocking(told, False)
    with socket.socket(fileno=channel) as stream:
        os.set_inheritable(channel, False)
        first = json.loads(stream.recv(LONGEST))
        confine(first["folders"], FORKING)
        _load(first["imports"])
        signal.set_wakeup_fd(told)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        poll = select.poll()
        for descriptor in (said, channel):
            poll.register(descriptor, select.POLLIN)
        running: dict[int, tuple[int, int]] = {}
        while True:
            events = dict(poll.poll())
            if said in events:
                os.read(said, 1024)
                _tell_ended(running)
            if channel in events:
                message, descriptors, _, _ = socket.recv_fds(stream, LONGEST, 4)
                if not message:
                    return
                asked = json.loads(message)
                if "signal" in asked:
                    _send(asked, running)
                else:
                    *given, ended = descriptors
                    others = [told, said, channel, ended, *(item for _, item in running.values())]
                    running[asked["number"]] = _forked(asked, given, others), ended


def _load(modules: Sequence[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the main process's to handle
    prepare_libraries()
    for name in modules:
        with contextlib.suppress(Exception):  # the job that needs it says what's wrong with it
            importlib.import_module(name)
    gc.freeze()  # else the first collection in each worker copies all of it


def _forked(asked: Mapping[str, Any], given: Sequence[int], others: Sequence[int]) -> int:
    """Fork a worker's supervisor, which goes on to be that and closes other descriptors; returns its number."""
    alone = len(list(_THREADS.iterdir())) == 1
    child = os.fork()
    if child == 0:
        try:
            _become(asked, given, others, alone=alone)
        finally:
            traceback.print_exc()
            os._exit(1)
    for descriptor in given:
        os.close(descriptor)
    return child


def _become(asked: Mapping[str, Any], given: Sequence[int], others: Sequence[int], *, alone: bool) -> None:
    requests, answers, log = given
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number in (1, 2):
        os.dup2(log, number)
    for descriptor in (*others, log):
        os.close(descriptor)
    os.environ |= asked["environment"]
    if alone:
        tempfile.tempdir = None
        np.random.seed()  # noqa: NPY002 (that libraries draw from, and that all forks would share)
        begin(requests, answers)
    for descriptor in (requests, answers):
        os.set_inheritable(descriptor, True)
    words = [sys.executable, "-P", "-c", asked["program"], str(requests), str(answers)]
    os.execv(sys.executable, words)  # noqa: S606 (whatever threads there were: nothing of them goes on)


def _send(asked: Mapping[str, Any], running: Mapping[int, tuple[int, int]]) -> None:
    if asked["number"] in running:  # so nobody has waited for it, and its number is still its own
        os.kill(running[asked["number"]][0], asked["signal"])


def _tell_ended(running: dict[int, tuple[int, int]]) -> None:
    """Write the exit codes of those that have ended."""
    for number, (process, ended) in list(running.items()):
        waited, status = os.waitpid(process, os.WNOHANG)
        if waited:
            del running[number]
            with contextlib.suppress(BrokenPipeError):  # nobody wants to know
                os.write(ended, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(ended)
