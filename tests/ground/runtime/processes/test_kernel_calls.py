"""Of every call that the kernel has, it's said what becomes of it in a confined process."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from conrepair.ground.runtime.processes import kernel_calls
from conrepair.ground.runtime.processes.confinement import CONFINED, GPU, NETWORK
from conrepair.ground.runtime.processes.kernel_calls import (
    ALLOWED,
    FILTERED,
    MACHINES,
    REFUSED,
    SILENT,
    numbers,
    rules,
)

# The kernel has them no longer, or C libraries do without: glibc takes `clone`, whose arguments can be looked at,
# where there's no `clone3`.
ABSENT = """
    _sysctl=156/- afs_syscall=183/- clone3=435 create_module=174/- epoll_ctl_old=214/- epoll_wait_old=215/-
    get_kernel_syms=177/- get_thread_area=211/- getpmsg=181/- lookup_dcookie=212/18 nfsservctl=180/42
    putpmsg=182/- query_module=178/- security=185/- set_thread_area=205/- sysfs=139/- tuxcall=184/- uselib=134/-
    vserver=236/-
"""
TABLES = (ALLOWED, FILTERED, SILENT, REFUSED, ABSENT)
# The kernel's tables have no other holes: x86-64 leaves 337 to 423 to nobody, so that all machines share what follows
# (arch/x86/entry/syscalls/syscall_64.tbl); the generic one 244 to 259 to machines of their own.
HOLES = {"x86_64": {*range(337, 424)}, "aarch64": {*range(244, 260), *range(295, 424)}}
LAST = 469  # file_setattr, Linux 6.17
OF_32_BITS = range(403, 424)
HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}

NO_CALLS = {"syscalls", "arch_specific_syscall", "sync_file_range2"}  # the last: of other machines, in 84's place
# What headers call otherwise than the kernel: names that C libraries had before.
NAMES = {"fstatat": "newfstatat", "sendfile64": "sendfile"}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_number_has_one_answer(machine: str) -> None:
    found = Counter(number for calls in TABLES for number in numbers(calls, machine).values())
    assert set(found) == {*range(LAST + 1)} - HOLES[machine]
    assert [number for number, times in found.items() if times > 1] == []


@pytest.mark.parametrize("machine", MACHINES)
def test_numbers_are_the_kernels(machine: str) -> None:
    """Against the header, which may be older than the table or newer."""
    header = next((path for path in map(Path, HEADERS[machine]) if path.is_file()), None)
    if header is None:
        pytest.skip("the kernel's headers aren't installed")
    said = dict(re.findall(r"^#define __NR(?:3264)?_(\w+) (\d+)$", header.read_text(), re.MULTILINE))
    known = {name: number for calls in TABLES for name, number in numbers(calls, machine).items()}
    wrong = {
        name: number
        for name, number in said.items()
        if name not in NO_CALLS and int(number) <= LAST and int(number) not in OF_32_BITS
        if known.get(NAMES.get(name, name)) != int(number)
    }
    assert wrong == {}
    assert len(said) > 300


@pytest.mark.parametrize("reach", [CONFINED, GPU, NETWORK])
def test_every_filtered_call_has_its_rule(reach: str) -> None:
    assert set(rules(reach)) == {name.split("=")[0] for name in kernel_calls.FILTERED.split()}
