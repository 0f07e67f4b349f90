"""An SSH server on loopback that runs what it's told, as machines do: `python ssh_server.py FOLDER`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

import asyncssh

HOST_KEY, CLIENT_KEY, PORT = "host_key", "client_key", "port"


async def _ran(process: Any) -> None:
    """Run a command until it ends, or who asked for it goes."""
    started = await asyncio.create_subprocess_shell(
        process.command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    await process.redirect(stdout=started.stdout, stderr=started.stderr)
    ended, left = asyncio.ensure_future(started.wait()), asyncio.ensure_future(process.wait_closed())
    await asyncio.wait([ended, left], return_when=asyncio.FIRST_COMPLETED)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    process.exit(await ended)


async def _served(folder: Path) -> None:
    for name in (HOST_KEY, CLIENT_KEY):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        key.write_public_key(folder / f"{name}.pub")
    server = await asyncssh.create_server(
        asyncssh.SSHServer,
        "127.0.0.1",
        0,
        server_host_keys=[str(folder / HOST_KEY)],
        authorized_client_keys=str(folder / f"{CLIENT_KEY}.pub"),
        process_factory=_ran,
        encoding=None,
    )
    port = folder / f".{PORT}"
    port.write_text(str(server.get_port()))
    port.rename(folder / PORT)
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(_served(Path(sys.argv[1])))
