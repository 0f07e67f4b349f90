"""A Dask cluster, as far as jobs need one: asked again when its scheduler comes back."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ipaddress
import itertools
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from conrepair.ground.runtime.errors import DeviceError, UsageError
from conrepair.ground.runtime.processes.workers import NO_LIBRARY, Failure
from conrepair_crowd import there

WITHOUT_TLS = "whoever reaches these addresses may run programs there and here"
"""What somebody writes who does without encryption and certificates."""

# Who may come in: a cluster is reached encrypted, with certificates, unless nobody else can reach it.

_ENCRYPTED = ("tls", "wss")
_INSIDE = ("inproc",)


def check_addresses(addresses: Iterable[str], without_tls: str | None) -> None:
    """Refuse a cluster that strangers could take part in.

    Args:
        addresses: Of its scheduler and its workers.
        without_tls: What the user says to that; `WITHOUT_TLS` permits it.

    Raises:
        UsageError: if it's not encrypted, and not all addresses are this machine's own.
    """
    if without_tls == WITHOUT_TLS:
        return
    for address in addresses:
        parts = urlsplit(address)
        if parts.scheme in (*_ENCRYPTED, *_INSIDE) or _is_loopback(parts.hostname):
            continue
        raise UsageError(
            f"{address} isn't encrypted: who reaches it can run programs on all machines of the cluster, this one "
            f"too. Start Dask with certificates (tls://..., docs/crowd.md), or set `without_tls` to {WITHOUT_TLS!r}."
        )


def _is_loopback(host: str | None) -> bool:
    if host is None or host == "localhost":
        return host is not None
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_KNOWN_SECONDS = 2.0  # for which it's believed what the scheduler has said of its workers
_PAUSE_SECONDS = 1.0
_CONNECT_SECONDS = 10
_FIRST_SECONDS = 30.0  # for one that has never answered, whose address or certificate is most likely wrong
_INSTALL = "jobs on a Dask cluster need the library distributed. Install it: pip install 'conrepair[crowd]'"


class Cluster:
    """Asks a scheduler to have jobs done. Use as a context manager.

    Args:
        scheduler: Its address.
        without_tls: As of `check_addresses`.
        patience: Seconds for which a scheduler may be away.

    Attributes:
        again: How many times a job was given anew, as the cluster wasn't what it was any more.
        gone: How many workers were there, and aren't any more.
        page: Address of Dask's own dashboard; where it has none, of nothing.

    Raises:
        UsageError: if Dask isn't installed, or the scheduler's address isn't encrypted and should be.
    """

    def __init__(self, scheduler: str, *, without_tls: str | None = None, patience: float = 600.0) -> None:
        try:
            import distributed
        except ImportError as error:
            raise UsageError(f"{_INSTALL}.") from error
        check_addresses([scheduler], without_tls)
        self._dask = distributed
        self._scheduler, self._without_tls, self._patience = scheduler, without_tls, patience
        self._turn = threading.RLock()
        self._opened: Any = None
        self._answered = self._over = False
        self._known: tuple[float, Mapping[str, Any]] = (0.0, {})
        self.again = self.gone = 0
        self.page = ""

    def __enter__(self) -> Cluster:
        self._client()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        with self._turn:
            self._close()

    @property
    def workers(self) -> Mapping[str, Any]:
        """What the scheduler has said of its workers, by their addresses, no longer than a moment ago.

        Raises:
            UsageError: if one isn't encrypted that should be.
        """
        with self._turn:
            when, known = self._known
            return known if time.monotonic() - when < _KNOWN_SECONDS else self.asked()

    def asked(self) -> Mapping[str, Any]:
        """As `workers`, of now."""
        with self._turn:
            try:
                known = dict(self._client().scheduler_info(n_workers=-1)["workers"])
            except (OSError, TimeoutError, concurrent.futures.CancelledError):
                return self._known[1]  # it's away: those that wait for it say so
            check_addresses(known, self._without_tls)
            self.gone += len(set(self._known[1]) - set(known))
            self._known = time.monotonic(), known
            return known

    @property
    def answers(self) -> bool:
        """Whether its scheduler is there, as far as is known."""
        return self._opened is not None and self._opened.status == "running"

    @property
    def known(self) -> Mapping[str, Any]:
        """As `workers`, of whenever they were asked for last."""
        return self._known[1]

    def done(
        self, key: str, request: Mapping[str, Any], resources: Mapping[str, float], without: Collection[str]
    ) -> Mapping[str, Any]:
        """Have a job done, and wait for it.

        Args:
            key: Names it: the same key is the same work.
            request: As of `there.run`.
            resources: That a worker must have.
            without: Addresses of workers that don't get it.

        Returns:
            As of `there.run`; a failure of the job where no worker survives it.

        Raises:
            DeviceError: if the scheduler doesn't come back.
        """
        attempts = (key if number == 0 else f"{key}-{number}" for number in itertools.count())
        while (answer := self._tried(next(attempts), request, resources, without)) is None:
            with self._turn:
                self.again += 1
            time.sleep(_PAUSE_SECONDS)
        return answer

    def _tried(
        self, key: str, request: Mapping[str, Any], resources: Mapping[str, float], without: Collection[str]
    ) -> Mapping[str, Any] | None:
        """As `done`, or None where the cluster isn't what it was any more."""
        client = self._client()
        left = [address for address in self.workers if address not in without] if without else None
        if left == []:
            return None
        future = client.submit(
            there.run,
            request,
            key=key,
            resources=dict(resources) or None,
            workers=left,
            allow_other_workers=False,
            pure=True,
            retries=0,
        )
        try:
            while left is not None and not future.done():
                if not set(left) & set(self.workers):
                    return None  # Dask would wait until one comes back at the same address
                time.sleep(_PAUSE_SECONDS)
            answer: Mapping[str, Any] = future.result()
        except (Exception, asyncio.CancelledError) as error:
            if future.status != "error":  # it's the scheduler that has failed, and not the work
                self._lost(client)
                return None
            if isinstance(error, self._dask.scheduler.KilledWorker):
                return there.nothing(_killed(error))
            if isinstance(error, ImportError):
                words = f"a worker lacks conrepair, or has another release of it: {error}"
                return there.nothing(Failure(NO_LIBRARY, type(error).__name__, words))
            raise
        finally:
            future.release()
        return answer

    def _client(self) -> Any:
        """A client whose scheduler answers."""
        with self._turn:
            if self._over:
                raise DeviceError(f"the Dask cluster at {self._scheduler} is no longer used")
            ends = time.monotonic() + (self._patience if self._answered else min(self._patience, _FIRST_SECONDS))
            while not self.answers:
                self._close()
                try:
                    self._opened = self._dask.Client(
                        self._scheduler, timeout=_CONNECT_SECONDS, set_as_default=False, name="conrepair"
                    )
                    self._answered, self.page = True, str(self._opened.dashboard_link)
                except RuntimeError as error:  # of Dask's configuration, which asks for another connection
                    raise UsageError(f"Dask doesn't connect to {self._scheduler}: {error}.") from error
                except (OSError, TimeoutError) as error:
                    if time.monotonic() > ends:
                        raise DeviceError(
                            f"no Dask scheduler answers at {self._scheduler}: {error}. Start it, and run the same "
                            "command again: what is done is kept."
                        ) from error
                    time.sleep(_PAUSE_SECONDS)
            return self._opened

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close(timeout=_PAUSE_SECONDS)
            self._opened = None

    def _lost(self, client: Any) -> None:
        """Take leave of a scheduler that has lost what it was asked, once for all who asked."""
        with self._turn:
            if self._opened is client:
                self._close()


def _killed(error: Exception) -> Failure:
    return Failure(
        kind="crash",
        error_type="KilledWorker",
        message=f"every machine that was given it went down: {str(error).partition('.')[0]}",
        explanation=(
            "Dask gives up a job when so many workers have died of it (`distributed.scheduler.allowed-failures`). "
            "Probably their machines ran out of memory: give the workers more, or set `limits.memory_gb`."
        ),
    )
