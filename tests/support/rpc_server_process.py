"""TVM's RPC server or tracker on loopback: python rpc_server_process.py PORT [KEY [TRACKER_PORT]].

`python -m tvm.exec.rpc_server` does the same in a process of its own, which outlives the one that was started.
"""

from __future__ import annotations

import sys

HOST = "127.0.0.1"
sys.modules["torch"] = None  # what TVM imports where it's there, most of a server's start


def main(port: str, *key_and_tracker: str) -> None:
    """Serve on that port until somebody ends the process."""
    here = {"host": HOST, "port": int(port), "port_end": int(port) + 1}
    if key_and_tracker:
        from tvm.rpc.server import PopenRPCServerState

        key, *tracker = key_and_tracker
        address = (HOST, int(tracker[0])) if tracker else None
        state = PopenRPCServerState(**here, key=key, tracker_addr=address, custom_addr=HOST)
    else:
        from tvm.rpc.tracker import PopenTrackerServerState

        state = PopenTrackerServerState(**here)
    print("ready", flush=True)
    state.thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
