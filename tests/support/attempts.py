"""Ways out of a confined worker, one a line: what each reaches for, and what has to become of it.

Arguments are harmless where an attempt gets through: a signal that ends nobody, a path that isn't there, a clock that
doesn't exist. What the kernel answers tells then whether it got that far.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import socket
import struct
import subprocess
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conrepair.ground.runtime.processes import kernel_calls

__all__ = ["ATTEMPTS", "OPEN", "REFUSED", "SILENT", "Around", "Attempt", "outcome"]

REFUSED = "refused"
SILENT = "does nothing"
OPEN = "open: "  # with the words by which docs/security.md names it

_REFUSALS = {errno.EACCES, errno.EPERM, errno.ENOSYS, errno.ENOTTY, errno.EXDEV}
_NUMBERS = {
    name: number
    for calls in (getattr(kernel_calls, table) for table in kernel_calls.__all__ if table.isupper())
    if isinstance(calls, str) and platform.machine() in kernel_calls.MACHINES
    for name, number in kernel_calls.numbers(calls, platform.machine()).items()
}
_HERE = -100  # AT_FDCWD
_NEW_USER, _NEW_MOUNT, _NEW_NET = 0x10000000, 0x00020000, 0x40000000
_CONTINUE = 18  # SIGCONT
_NOWHERE = b"/conrepair-nowhere"


@dataclass(frozen=True)
class Around:
    """What's around a worker.

    Attributes:
        outside: A folder that isn't its, with `victim`, `empty` (a folder) and `pipe` (a named one, with text in it).
        own: A folder of its own.
        process: One that it didn't start.
        supervisor: Its parent.
        port: That listens here.
        stream: Path of a socket that listens.
        datagrams: Path of one that takes datagrams.
        abstract: Name of one that listens.
        terminal: Path of somebody's terminal, in which something was typed.
    """

    outside: Path
    own: Path
    process: int
    supervisor: int
    port: int
    stream: str
    datagrams: str
    abstract: str
    terminal: str

    @property
    def victim(self) -> Path:
        """A file outside."""
        return self.outside / "victim"

    @property
    def name(self) -> bytes:
        """Path of the victim, for the kernel."""
        return os.fsencode(self.victim)


@dataclass(frozen=True)
class Attempt:
    """One way.

    Attributes:
        what: It reaches for.
        how: It does.
        expected: `REFUSED`, `SILENT` or `OPEN`.
        landlock: Version that it takes to be kept from; 0 where seccomp does that.
        by_gpus: What's expected of a worker that needs a GPU, if something else.
    """

    what: str
    how: Callable[[Around], object]
    expected: str = REFUSED
    landlock: int = 0
    by_gpus: str = ""


def outcome(attempt: Attempt, around: Around) -> str:
    """Try it in a process of its own; what became of it."""
    there, here = os.pipe()
    if (child := os.fork()) == 0:
        try:
            attempt.how(around)
            said = "done"
        except OSError as error:
            said = REFUSED if error.errno in _REFUSALS else f"got to {errno.errorcode.get(error.errno or 0)}"
        except BaseException as error:  # noqa: BLE001 (whatever it is, it's not what's expected)
            said = f"{type(error).__name__}: {error}"
        os.write(here, said.encode())
        os._exit(0)
    os.close(here)
    with os.fdopen(there, encoding="utf-8") as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said or "died"


def _call(name: str | int, *arguments: Any) -> int:
    number = name if isinstance(name, int) else _NUMBERS.get(name)
    if number is None:  # this processor has no such call
        raise OSError(errno.ENOSYS, str(name))
    given = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    answer = int(ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *given))
    if answer < 0:
        raise OSError(ctypes.get_errno(), str(name))
    return answer


def _opened(path: Path | str, flags: int = os.O_RDONLY) -> int:
    return os.open(path, flags | os.O_NOCTTY | os.O_NONBLOCK)


def _socket(family: int, kind: int = 1) -> int:
    return _call("socket", family, kind, 0)


def _reconnected(around: Around) -> None:
    here, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    here.connect(around.stream)


def _sent_by_a_pair(around: Around) -> None:
    here, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    here.sendto(b"x", around.datagrams)


def _cloned(flags: int) -> None:
    if _call("clone", flags | 17, 0, 0, 0, 0) == 0:
        os._exit(0)


def _left(name: str, *arguments: int) -> None:
    before = os.getpgid(0), os.getsid(0)
    _call(name, *arguments)
    if (os.getpgid(0), os.getsid(0)) == before:
        raise PermissionError(errno.EPERM, name)


def _made(folder: Path) -> None:
    (folder / f"conrepair-{os.getpid()}").touch(exist_ok=False)


def _through_a_link(around: Around) -> None:
    (around.own / "link").unlink(missing_ok=True)
    (around.own / "link").symlink_to(around.victim)
    (around.own / "link").write_text("x")


def _reopened(around: Around) -> None:
    os.open(f"/proc/self/fd/{os.open(around.victim, os.O_PATH)}", os.O_WRONLY)


def _moved_out(around: Around) -> None:
    (around.own / "mine").write_text("x")
    (around.own / "mine").rename(around.outside / "moved")


def _linked_out(around: Around) -> None:
    (around.own / "mine").write_text("x")
    (around.outside / "linked").hardlink_to(around.own / "mine")


def _swapped(around: Around) -> None:
    (around.own / "mine").write_text("x")
    _call("renameat2", _HERE, os.fsencode(around.own / "mine"), _HERE, around.name, 2)


def _by_a_shell(words: str) -> None:
    if subprocess.run(["/bin/bash", "-c", words], capture_output=True, check=False).returncode:
        raise PermissionError(errno.EACCES, words)


def _by_handle(around: Around) -> None:
    handle, mounted = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136), ctypes.c_int()
    _call("name_to_handle_at", _HERE, around.name, handle, ctypes.byref(mounted), 0)
    _call("open_by_handle_at", os.open(around.outside, os.O_RDONLY), handle, os.O_WRONLY)


def _device(around: Around, kind: int) -> None:
    os.mknod(around.own / f"device{kind}", kind | 0o600, os.makedev(1, 3))


def _mapped(around: Around) -> None:
    address = ctypes.CDLL(None).mmap
    address.restype = ctypes.c_void_p
    place = address(None, 4096, 1, 1, os.open(around.victim, os.O_RDONLY), 0)
    _call("mprotect", ctypes.c_void_p(place), 4096, 3)


def _asked(around: Around, command: int, size: int = 64) -> None:
    fcntl.ioctl(_opened(around.victim), command, bytes(size))


def _typed(around: Around) -> None:
    fcntl.ioctl(_opened(around.terminal), termios.TIOCSTI, b"x")


def _read_from(path: Path | str) -> None:
    if not os.read(_opened(path), 1):
        raise PermissionError(errno.EACCES, str(path))


_BUFFER = ctypes.create_string_buffer(4096)
_ZEROS = bytes(128)
_LIMIT = struct.pack("QQ", 600, 600)
_PARAMETER = struct.pack("i", 0)
_ATTRIBUTES = struct.pack("IIQiIQQQ", 48, 3, 0, 0, 0, 0, 0, 0)
_HOW = struct.pack("QQQ", os.O_WRONLY, 0, 0)
_ONE_CPU = struct.pack("Q", 1)

_FILES = (
    Attempt("create a file", lambda x: (x.outside / "new").write_text("x"), landlock=1),
    Attempt("overwrite", lambda x: x.victim.write_text("x"), landlock=1),
    Attempt("append", lambda x: x.victim.open("a"), landlock=1),
    Attempt("empty by opening", lambda x: os.open(x.victim, os.O_RDONLY | os.O_TRUNC), landlock=3),
    Attempt("empty by its path", lambda x: os.truncate(x.victim, 0), landlock=3),
    Attempt("remove", lambda x: x.victim.unlink(), landlock=1),
    Attempt("remove a folder", lambda x: (x.outside / "empty").rmdir(), landlock=1),
    Attempt("rename", lambda x: x.victim.rename(x.outside / "other"), landlock=1),
    Attempt("move out", _moved_out, landlock=1),
    Attempt("take in", lambda x: x.victim.rename(x.own / "taken"), landlock=1),
    Attempt("swap with one of its own", _swapped, landlock=1),
    Attempt("link out", _linked_out, landlock=1),
    Attempt("link in", lambda x: (x.own / "in").hardlink_to(x.victim), landlock=1),
    Attempt("make a link", lambda x: (x.outside / "symlink").symlink_to("/"), landlock=1),
    Attempt("make a folder", lambda x: (x.outside / "folder").mkdir(), landlock=1),
    Attempt("make a named pipe", lambda x: os.mkfifo(x.outside / "fifo"), landlock=1),
    Attempt("make a character device of its own", lambda x: _device(x, 0o020000), landlock=1),
    Attempt("make a block device of its own", lambda x: _device(x, 0o060000), landlock=1),
    Attempt("make a file without a name", lambda x: os.open(x.outside, os.O_TMPFILE | os.O_WRONLY), landlock=1),
    Attempt("write through a link", _through_a_link, landlock=1),
    Attempt("write by /proc/self/root", lambda x: Path(f"/proc/self/root{x.victim}").write_text("x"), landlock=1),
    Attempt(
        "write by another's root", lambda x: _opened(f"/proc/{x.process}/root{x.victim}", os.O_WRONLY), landlock=1
    ),
    Attempt("write by a descriptor of its path", _reopened, landlock=1),
    Attempt(
        "write by openat2", lambda x: _call("openat2", _HERE, x.name, struct.pack("QQQ", 1, 0, 0), 24), landlock=1
    ),
    Attempt("write by a handle", _by_handle),
    Attempt("write by a mapping", _mapped, landlock=1),
    Attempt("write by a program", lambda x: _by_a_shell(f"echo x > '{x.victim}'"), landlock=1),
    Attempt("take a lease", lambda x: fcntl.fcntl(_opened(x.victim), 1024, 0)),
    Attempt("hint at how it's written", lambda x: fcntl.fcntl(_opened(x.victim), 1036, struct.pack("Q", 1))),
    Attempt("lock", lambda x: fcntl.flock(_opened(x.victim), fcntl.LOCK_EX | fcntl.LOCK_NB), OPEN + "**Locks**"),
    Attempt("set times", lambda x: os.utime(x.victim, (1, 1)), OPEN + "**Times of files**"),
    Attempt("read", lambda x: x.victim.read_text(), OPEN + "**Reading**"),
    Attempt("take from a named pipe", lambda x: _read_from(x.outside / "pipe"), OPEN + "**Pipes and terminals"),
)
_MODES = (
    Attempt("chmod", lambda x: _call("chmod", x.name, 0o777), SILENT),
    Attempt("fchmod", lambda x: _call("fchmod", _opened(x.victim), 0o777), SILENT),
    Attempt("fchmodat", lambda x: _call("fchmodat", _HERE, x.name, 0o777), SILENT),
    Attempt("fchmodat2", lambda x: _call("fchmodat2", _HERE, x.name, 0o777, 0), SILENT),
    Attempt("chown", lambda x: _call("chown", x.name, 1, 1), SILENT),
    Attempt("lchown", lambda x: _call("lchown", x.name, 1, 1), SILENT),
    Attempt("fchown", lambda x: _call("fchown", _opened(x.victim), 1, 1), SILENT),
    Attempt("fchownat", lambda x: _call("fchownat", _HERE, x.name, 1, 1, 0), SILENT),
    Attempt("setxattr", lambda x: _call("setxattr", x.name, b"user.a", b"x", 1, 0), SILENT),
    Attempt("lsetxattr", lambda x: _call("lsetxattr", x.name, b"user.a", b"x", 1, 0), SILENT),
    Attempt("fsetxattr", lambda x: _call("fsetxattr", _opened(x.victim), b"user.a", b"x", 1, 0), SILENT),
    Attempt("setxattrat", lambda x: _call("setxattrat", _HERE, x.name, 0, b"user.a", _ZEROS, 16), SILENT),
    Attempt("removexattr", lambda x: _call("removexattr", x.name, b"user.kept"), SILENT),
    Attempt("lremovexattr", lambda x: _call("lremovexattr", x.name, b"user.kept"), SILENT),
    Attempt("fremovexattr", lambda x: _call("fremovexattr", _opened(x.victim), b"user.kept"), SILENT),
    Attempt("removexattrat", lambda x: _call("removexattrat", _HERE, x.name, 0, b"user.kept"), SILENT),
    Attempt("file_setattr", lambda x: _call("file_setattr", _HERE, x.name, _ZEROS, 24, 0), SILENT),
    Attempt("FS_IOC_SETFLAGS", lambda x: _asked(x, 0x40086602)),
    Attempt("FS_IOC_FSSETXATTR", lambda x: _asked(x, 0x401C5820)),
    Attempt("FS_IOC_SETVERSION", lambda x: _asked(x, 0x40087602)),
    Attempt("FS_IOC_ENABLE_VERITY", lambda x: _asked(x, 0x40806685, 128)),
    Attempt("FITRIM", lambda x: _asked(x, 0xC0185879)),
)
_PROCESSES = (
    Attempt("prlimit64", lambda x: _call("prlimit64", x.process, 0, _LIMIT, 0)),
    Attempt("prlimit64 of its supervisor", lambda x: _call("prlimit64", x.supervisor, 0, _LIMIT, 0)),
    Attempt("setpriority", lambda x: _call("setpriority", 0, x.process, 19), SILENT),
    Attempt("setpriority of a group", lambda x: _call("setpriority", 1, os.getpgid(x.process), 19), SILENT),
    Attempt("setpriority of a user", lambda x: _call("setpriority", 2, 0, 19), SILENT),
    Attempt("sched_setaffinity", lambda x: _call("sched_setaffinity", x.process, 8, _ONE_CPU), SILENT),
    Attempt("sched_setscheduler", lambda x: _call("sched_setscheduler", x.process, 5, _PARAMETER), SILENT),
    Attempt("sched_setparam", lambda x: _call("sched_setparam", x.process, _PARAMETER), SILENT),
    Attempt("sched_setattr", lambda x: _call("sched_setattr", x.process, _ATTRIBUTES, 0), SILENT),
    Attempt("ioprio_set", lambda x: _call("ioprio_set", 1, x.process, 3 << 13), SILENT),
    Attempt("leave its group", lambda x: _left("setpgid", 0, 0)),
    Attempt("leave its session", lambda x: _left("setsid")),
    Attempt("kill", lambda x: os.kill(x.process, _CONTINUE), landlock=6),
    Attempt("kill its supervisor", lambda x: os.kill(x.supervisor, _CONTINUE), landlock=6),
    Attempt("kill a group", lambda x: os.killpg(os.getpgid(x.process), _CONTINUE), landlock=6),
    Attempt("tgkill", lambda x: _call("tgkill", x.process, x.process, _CONTINUE), landlock=6),
    Attempt("tkill", lambda x: _call("tkill", x.process, _CONTINUE), landlock=6),
    Attempt("pidfd_send_signal", lambda x: _call("pidfd_send_signal", os.pidfd_open(x.process), _CONTINUE, 0, 0)),
    Attempt("a signal for what happens to a file", lambda x: fcntl.fcntl(0, fcntl.F_SETOWN, x.process)),
    Attempt("which signal that is", lambda x: fcntl.fcntl(0, fcntl.F_SETSIG, 9)),
    Attempt("trace", lambda x: _call("ptrace", 0x4206, x.process, 0, 0)),
    Attempt("read memory", lambda x: _call("process_vm_readv", x.process, 0, 0, 0, 0, 0)),
    Attempt("write memory", lambda x: _call("process_vm_writev", x.process, 0, 0, 0, 0, 0)),
    Attempt("write memory by a file", lambda x: _opened(f"/proc/{x.process}/mem", os.O_WRONLY), landlock=1),
    Attempt("drop memory", lambda x: _call("process_madvise", os.pidfd_open(x.process), 0, 0, 20, 0)),
    Attempt("reap memory", lambda x: _call("process_mrelease", os.pidfd_open(x.process), 0)),
    Attempt("move memory", lambda x: _call("migrate_pages", x.process, 0, 0, 0)),
    Attempt("move pages", lambda x: _call("move_pages", x.process, 0, 0, 0, 0, 0)),
    Attempt("take a descriptor", lambda x: _call("pidfd_getfd", os.pidfd_open(x.process), 0, 0)),
    Attempt("open its files", lambda x: _opened(f"/proc/{x.process}/fd/0"), landlock=1),
    Attempt("open its supervisor's", lambda x: _opened(f"/proc/{x.supervisor}/fd/0"), landlock=1),
    Attempt("read the environment", lambda x: _opened(f"/proc/{x.process}/environ"), landlock=1),
    Attempt("compare descriptors", lambda x: _call("kcmp", os.getpid(), x.process, 0, 0, 0)),
    Attempt(
        "offer it to be killed",
        lambda x: _opened(f"/proc/{x.process}/oom_score_adj", os.O_WRONLY),
        landlock=1,
    ),
)
_NAMESPACES = (
    Attempt("unshare users", lambda x: _call("unshare", _NEW_USER)),
    Attempt("unshare mounts", lambda x: _call("unshare", _NEW_MOUNT)),
    Attempt("unshare the network", lambda x: _call("unshare", _NEW_NET)),
    Attempt("clone with users", lambda x: _cloned(_NEW_USER)),
    Attempt("clone with the network", lambda x: _cloned(_NEW_NET)),
    Attempt("clone3", lambda x: _call("clone3", 0, 0)),
    Attempt("setns", lambda x: _call("setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0)),
    Attempt("chroot", lambda x: _call("chroot", _NOWHERE)),
    Attempt("pivot_root", lambda x: _call("pivot_root", _NOWHERE, _NOWHERE)),
    Attempt("mount", lambda x: _call("mount", b"none", _NOWHERE, b"tmpfs", 0, 0)),
    Attempt("umount2", lambda x: _call("umount2", _NOWHERE, 0)),
    Attempt("mount_setattr", lambda x: _call("mount_setattr", _HERE, _NOWHERE, 0, _ZEROS, 32)),
    Attempt("move_mount", lambda x: _call("move_mount", _HERE, _NOWHERE, _HERE, _NOWHERE, 0)),
    Attempt("fsopen", lambda x: _call("fsopen", b"tmpfs", 0)),
    Attempt("fsconfig", lambda x: _call("fsconfig", 0, 0, 0, 0, 0)),
    Attempt("fsmount", lambda x: _call("fsmount", 0, 0, 0)),
    Attempt("fspick", lambda x: _call("fspick", _HERE, _NOWHERE, 0)),
    Attempt("open_tree", lambda x: _call("open_tree", _HERE, b"/", 1)),
    Attempt("open_tree_attr", lambda x: _call("open_tree_attr", _HERE, b"/", 1, 0, 0)),
)
_SYSTEM = (
    Attempt("adjtimex", lambda x: _call("adjtimex", _BUFFER)),
    Attempt("clock_adjtime", lambda x: _call("clock_adjtime", 0, _BUFFER)),
    Attempt("clock_settime", lambda x: _call("clock_settime", 99, _ZEROS)),
    Attempt("settimeofday", lambda x: _call("settimeofday", 0, 0)),
    Attempt("sethostname", lambda x: _call("sethostname", b"", -1)),
    Attempt("setdomainname", lambda x: _call("setdomainname", b"", -1)),
    Attempt("name the machine by a file", lambda x: _opened("/proc/sys/kernel/hostname", os.O_WRONLY), landlock=1),
    Attempt("say where crashes go", lambda x: _opened("/proc/sys/kernel/core_pattern", os.O_WRONLY), landlock=1),
    Attempt("say what panics do", lambda x: _opened("/proc/sys/kernel/panic", os.O_WRONLY), landlock=1),
    Attempt("the kernel's log", lambda x: _opened("/dev/kmsg", os.O_WRONLY), landlock=1),
    Attempt("syslog", lambda x: _call("syslog", 10, 0, 0)),
    Attempt("acct", lambda x: _call("acct", _NOWHERE)),
    Attempt("quotactl", lambda x: _call("quotactl", 0, _NOWHERE, 0, 0)),
    Attempt("quotactl_fd", lambda x: _call("quotactl_fd", 0, 0, 0, 0)),
    Attempt("swapon", lambda x: _call("swapon", _NOWHERE, 0)),
    Attempt("swapoff", lambda x: _call("swapoff", _NOWHERE)),
    Attempt("reboot", lambda x: _call("reboot", 0, 0, 0, 0)),
    Attempt("init_module", lambda x: _call("init_module", 0, 0, 0)),
    Attempt("finit_module", lambda x: _call("finit_module", -1, b"", 0)),
    Attempt("delete_module", lambda x: _call("delete_module", b"conrepair", 0)),
    Attempt("kexec_load", lambda x: _call("kexec_load", 0, 99, 0, 0)),
    Attempt("kexec_file_load", lambda x: _call("kexec_file_load", -1, -1, 0, b"", 0)),
    Attempt("iopl", lambda x: _call("iopl", 0)),
    Attempt("ioperm", lambda x: _call("ioperm", 0x80, 1, 0)),
    Attempt("modify_ldt", lambda x: _call("modify_ldt", 0, _BUFFER, 0)),
    Attempt("bpf", lambda x: _call("bpf", 0, 0, 0)),
    Attempt("perf_event_open", lambda x: _call("perf_event_open", _ZEROS, 0, -1, -1, 0)),
    Attempt("userfaultfd", lambda x: _call("userfaultfd", 1)),
    Attempt("fanotify_init", lambda x: _call("fanotify_init", 0x200, 0)),
    Attempt("add_key", lambda x: _call("add_key", b"user", b"conrepair", b"x", 1, -1)),
    Attempt("request_key", lambda x: _call("request_key", b"user", b"conrepair", 0, 0)),
    Attempt("keyctl", lambda x: _call("keyctl", 0, -3, 0)),
    Attempt("lsm_set_self_attr", lambda x: _call("lsm_set_self_attr", 0, 0, 0, 0)),
    Attempt("vhangup", lambda x: _call("vhangup")),
    Attempt("io_uring_setup", lambda x: _call("io_uring_setup", 1, _BUFFER)),
    Attempt("io_uring_register", lambda x: _call("io_uring_register", -1, 0, 0, 0)),
    Attempt("a call that isn't in the table", lambda x: _call(9999)),
    Attempt("a call of another interface", lambda x: _call(0x40000000 + 39)),
)
_GPU_OPENS = "done"
_SOCKETS = (
    Attempt("TCP", lambda x: socket.create_connection(("127.0.0.1", x.port), 5)),
    Attempt("TCP by a shell", lambda x: _by_a_shell(f"exec 3<>/dev/tcp/127.0.0.1/{x.port}")),
    Attempt("UDP", lambda x: _socket(2, 2)),
    Attempt("raw IP", lambda x: _call("socket", 2, 3, 1)),
    Attempt("IP 6", lambda x: _socket(10)),
    Attempt("netlink", lambda x: _socket(16, 3)),
    Attempt("packets", lambda x: _socket(17, 3)),
    Attempt("Bluetooth", lambda x: _socket(31)),
    Attempt("the kernel's ciphers", lambda x: _socket(38, 5)),
    Attempt("virtual machines", lambda x: _socket(40)),
    Attempt("XDP", lambda x: _socket(44, 3)),
    Attempt("a local socket", lambda x: _socket(1), by_gpus=_GPU_OPENS),
    Attempt("a local one for datagrams", lambda x: _socket(1, 2)),
    Attempt("a raw local one", lambda x: _socket(1, 3)),
    Attempt("a service at a path", lambda x: socket.socket(socket.AF_UNIX).connect(x.stream)),
    Attempt("a service at a name", lambda x: socket.socket(socket.AF_UNIX).connect(f"\0{x.abstract}")),
    Attempt("a service by one of a pair", _reconnected),
    Attempt("a service by datagrams of a pair", _sent_by_a_pair),
    Attempt("a pair for datagrams", lambda x: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)),
    Attempt("wait at a path", lambda x: socket.socket(socket.AF_UNIX).bind(str(x.outside / "new")), landlock=1),
    Attempt("take a caller", lambda x: _call("accept4", 0, 0, 0, 0)),
)
_SHARED = (
    Attempt("shmget", lambda x: _call("shmget", 0, 4096, 0o600)),
    Attempt("shmat", lambda x: _call("shmat", -1, 0, 0)),
    Attempt("shmctl", lambda x: _call("shmctl", -1, 0, 0)),
    Attempt("semget", lambda x: _call("semget", 0, 0, 0)),
    Attempt("semop", lambda x: _call("semop", -1, 0, 0)),
    Attempt("msgget", lambda x: _call("msgget", -1, 0)),
    Attempt("msgsnd", lambda x: _call("msgsnd", -1, 0, 0, 0)),
    Attempt("msgrcv", lambda x: _call("msgrcv", -1, 0, 0, 0, 0)),
    Attempt("mq_open", lambda x: _call("mq_open", b"conrepair", 0, 0, 0)),
    Attempt("mq_unlink", lambda x: _call("mq_unlink", b"conrepair")),
    Attempt("memory by a name", lambda x: _made(Path("/dev/shm")), landlock=1),  # noqa: S108
    Attempt("write to a terminal", lambda x: _opened(x.terminal, os.O_WRONLY), landlock=1),
    Attempt("type into a terminal", _typed),
    Attempt("set a terminal's modes", lambda x: fcntl.ioctl(_opened(x.terminal), termios.TCSETS, _ZEROS)),
    Attempt("set a terminal's size", lambda x: fcntl.ioctl(_opened(x.terminal), termios.TIOCSWINSZ, _ZEROS)),
    Attempt("paste into a console", lambda x: fcntl.ioctl(_opened(x.terminal), 0x541C, b"\x03")),
    Attempt("take a terminal", lambda x: fcntl.ioctl(_opened(x.terminal), termios.TIOCSCTTY, 1)),
    Attempt("a new terminal", lambda x: _opened("/dev/ptmx", os.O_RDWR), landlock=1),
    Attempt("read from a terminal", lambda x: _read_from(x.terminal), OPEN + "**Pipes and terminals"),
)
ATTEMPTS = (*_FILES, *_MODES, *_PROCESSES, *_NAMESPACES, *_SYSTEM, *_SOCKETS, *_SHARED)
