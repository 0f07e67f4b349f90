"""Every call that Linux has, sorted by what becomes of it in a confined process; rules on arguments of some.

A name, and its number: on x86-64 and AArch64, where they differ; "-" where there's none. As in the kernel's tables
(arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h) up to Linux 6.18. Calls that aren't here
are answered as a kernel without them does: what's new in the kernel reaches nothing that nobody has looked at.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass

from conrepair.ground.runtime.processes.reach import GPU, NETWORK

__all__ = [
    "ALLOWED",
    "FILTERED",
    "GROUPS",
    "MACHINES",
    "REFUSED",
    "SILENT",
    "Argument",
    "CallRule",
    "numbers",
    "rules",
]

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW*
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5
_KIND_OF_SOCKET = 0xF  # the other bits are flags
_LOCAL, _IP = 1, (2, 10)

# What files, pipes and terminals are asked by C libraries and compilers, and by `cp` for files that share blocks.
_ASKED = (
    *(0x5401, 0x802C542A, 0x5413, 0x540F, 0x541B, 0x5421, 0x5450, 0x5451),  # TCGETS .. FIOCLEX
    *(0x80086601, 0x801C581F, 0xC020660B, 0x40049409, 0x4020940D),  # FS_IOC_GETFLAGS .. FICLONERANGE
)
# By the byte that says whose they are: NVIDIA's memory (none), its devices, Direct Rendering, AMD's compute.
_OF_GPUS, _WHOSE = (0x0000, 0x4600, 0x6400, 0x4B00), 0xFF00
# Descriptors, their flags, locks, sizes of pipes, seals: not who gets signals of them, nor leases and hints.
_OF_DESCRIPTORS = (*range(8), 9, 36, 37, 38, 1025, 1027, 1028, *range(1030, 1036))


@dataclass(frozen=True)
class Argument:
    """One argument of a call, of which the kernel takes the lower 32 bits.

    Attributes:
        place: Which, from 0.
        values: That it may have.
        mask: Bits of it that are looked at.
    """

    place: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF


@dataclass(frozen=True)
class CallRule:
    """When a call is allowed.

    Attributes:
        ways: It is where all arguments of one of these are as they say; () for never.
        otherwise: Number of the error that it's answered with else; 0 says that all is well, and does nothing.
    """

    ways: tuple[tuple[Argument, ...], ...]
    otherwise: int = errno.EACCES


_ALWAYS = CallRule(((),))
_NEVER = CallRule(())


def rules(reach: str) -> Mapping[str, CallRule]:
    """By the names of `kernel_calls.FILTERED`.

    Args:
        reach: Of the process.
    """
    asked = (Argument(1, _ASKED),)
    of_gpus = (Argument(1, _OF_GPUS, _WHOSE),)
    # No datagrams: they're sent to whom one likes, over a pair of sockets too.
    local = (Argument(0, (_LOCAL,)), Argument(1, (_STREAM, _PACKETS), _KIND_OF_SOCKET))
    over_ip = (Argument(0, _IP), Argument(1, (_STREAM, _DATAGRAM), _KIND_OF_SOCKET))
    reached = _ALWAYS if reach == NETWORK else _NEVER
    # CUDA makes a socket for others to ask it for memory, and doesn't start where it can't.
    waited_at = _NEVER if reach not in {NETWORK, GPU} else _ALWAYS
    return {
        "clone": CallRule(((Argument(0, (0,), _NEW_NAMESPACES),),)),
        "fcntl": CallRule(((Argument(1, _OF_DESCRIPTORS),),)),
        "ioctl": CallRule((asked, of_gpus) if reach == GPU else (asked,), errno.ENOTTY),
        "prlimit64": CallRule((_own(0),)),
        "move_pages": CallRule((_own(0),)),
        # Threads have numbers, too, that a filter can't tell from those of other processes.
        "setpriority": CallRule(((Argument(0, (0,)), *_own(1)),), 0),
        "sched_setaffinity": CallRule((_own(0),), 0),
        "sched_setscheduler": CallRule((_own(0),), 0),
        "sched_setparam": CallRule((_own(0),), 0),
        "sched_setattr": CallRule((_own(0),), 0),
        "socketpair": CallRule((local,)),
        "socket": {NETWORK: CallRule((over_ip,)), GPU: CallRule((local,))}.get(reach, _NEVER),
        "bind": waited_at,
        "listen": waited_at,
        "connect": reached,
        "accept": reached,
        "accept4": reached,
    }


def _own(place: int) -> tuple[Argument, ...]:
    """The process that calls, which is called 0."""
    return (Argument(place, (0,)),)


MACHINES = ("x86_64", "aarch64")

# They change nothing but the process itself and what Landlock looks after, or what docs/security.md names as open.
ALLOWED = """
    access=21/- alarm=37/- arch_prctl=158/- brk=12/214 cachestat=451 capget=125/90 capset=126/91 chdir=80/49
    clock_getres=229/114 clock_gettime=228/113 clock_nanosleep=230/115 close=3/57 close_range=436
    copy_file_range=326/285 creat=85/- dup=32/23 dup2=33/- dup3=292/24 epoll_create=213/- epoll_create1=291/20
    epoll_ctl=233/21 epoll_pwait=281/22 epoll_pwait2=441 epoll_wait=232/- eventfd=284/- eventfd2=290/19
    execve=59/221 execveat=322/281 exit=60/93 exit_group=231/94 faccessat=269/48 faccessat2=439
    fadvise64=221/223 fallocate=285/47 fchdir=81/50 fdatasync=75/83 fgetxattr=193/10 file_getattr=468
    flistxattr=196/13 flock=73/32 fork=57/- fstat=5/80 fstatfs=138/44 fsync=74/82 ftruncate=77/46 futex=202/98
    futex_requeue=456 futex_wait=455 futex_waitv=449 futex_wake=454 futimesat=261/- get_mempolicy=239/236
    get_robust_list=274/100 getcpu=309/168 getcwd=79/17 getdents=78/- getdents64=217/61 getegid=108/177
    geteuid=107/175 getgid=104/176 getgroups=115/158 getitimer=36/102 getpeername=52/205 getpgid=121/155
    getpgrp=111/- getpid=39/172 getppid=110/173 getpriority=140/141 getrandom=318/278 getresgid=120/150
    getresuid=118/148 getrlimit=97/163 getrusage=98/165 getsid=124/156 getsockname=51/204 getsockopt=55/209
    gettid=186/178 gettimeofday=96/169 getuid=102/174 getxattr=191/8 getxattrat=464 inotify_add_watch=254/27
    inotify_init=253/- inotify_init1=294/26 inotify_rm_watch=255/28 io_cancel=210/3 io_destroy=207/1
    io_getevents=208/4 io_pgetevents=333/292 io_setup=206/0 io_submit=209/2 ioprio_get=252/31 kill=62/129
    landlock_add_rule=445 landlock_create_ruleset=444 landlock_restrict_self=446 lgetxattr=192/9 link=86/-
    linkat=265/37 listmount=458 listxattr=194/11 listxattrat=465 llistxattr=195/12 lseek=8/62
    lsm_get_self_attr=459 lsm_list_modules=461 lstat=6/- madvise=28/233 map_shadow_stack=453 mbind=237/235
    membarrier=324/283 memfd_create=319/279 memfd_secret=447 mincore=27/232 mkdir=83/- mkdirat=258/34
    mknod=133/- mknodat=259/33 mlock=149/228 mlock2=325/284 mlockall=151/230 mmap=9/222 mprotect=10/226
    mremap=25/216 mseal=462 msync=26/227 munlock=150/229 munlockall=152/231 munmap=11/215
    name_to_handle_at=303/264 nanosleep=35/101 newfstatat=262/79 open=2/- openat=257/56 openat2=437 pause=34/-
    personality=135/92 pidfd_open=434 pipe=22/- pipe2=293/59 pkey_alloc=330/289 pkey_free=331/290
    pkey_mprotect=329/288 poll=7/- ppoll=271/73 prctl=157/167 pread64=17/67 preadv=295/69 preadv2=327/286
    pselect6=270/72 pwrite64=18/68 pwritev=296/70 pwritev2=328/287 read=0/63 readahead=187/213 readlink=89/-
    readlinkat=267/78 readv=19/65 recvfrom=45/207 recvmmsg=299/243 recvmsg=47/212 remap_file_pages=216/234
    rename=82/- renameat=264/38 renameat2=316/276 restart_syscall=219/128 rmdir=84/- rseq=334/293
    rt_sigaction=13/134 rt_sigpending=127/136 rt_sigprocmask=14/135 rt_sigqueueinfo=129/138 rt_sigreturn=15/139
    rt_sigsuspend=130/133 rt_sigtimedwait=128/137 rt_tgsigqueueinfo=297/240 sched_get_priority_max=146/125
    sched_get_priority_min=147/126 sched_getaffinity=204/123 sched_getattr=315/275 sched_getparam=143/121
    sched_getscheduler=145/120 sched_rr_get_interval=148/127 sched_yield=24/124 seccomp=317/277 select=23/-
    sendfile=40/71 sendmmsg=307/269 sendmsg=46/211 sendto=44/206 set_mempolicy=238/237
    set_mempolicy_home_node=450 set_robust_list=273/99 set_tid_address=218/96 setfsgid=123/152 setfsuid=122/151
    setgid=106/144 setgroups=116/159 setitimer=38/103 setregid=114/143 setresgid=119/149 setresuid=117/147
    setreuid=113/145 setrlimit=160/164 setsockopt=54/208 setuid=105/146 shutdown=48/210 sigaltstack=131/132
    signalfd=282/- signalfd4=289/74 splice=275/76 stat=4/- statfs=137/43 statmount=457 statx=332/291
    symlink=88/- symlinkat=266/36 sync=162/81 sync_file_range=277/84 syncfs=306/267 sysinfo=99/179 tee=276/77
    tgkill=234/131 time=201/- timer_create=222/107 timer_delete=226/111 timer_getoverrun=225/109
    timer_gettime=224/108 timer_settime=223/110 timerfd_create=283/85 timerfd_gettime=287/87
    timerfd_settime=286/86 times=100/153 tkill=200/130 truncate=76/45 umask=95/166 uname=63/160 unlink=87/-
    unlinkat=263/35 uprobe=336/- uretprobe=335/- utime=132/- utimensat=280/88 utimes=235/- vfork=58/-
    vmsplice=278/75 wait4=61/260 waitid=247/95 write=1/64 writev=20/66
"""

# Allowed with some arguments: `conrepair.ground.runtime.processes.kernel_calls` says which.
FILTERED = """
    accept=43/202 accept4=288/242 bind=49/200 clone=56/220 connect=42/203 fcntl=72/25 ioctl=16/29 listen=50/201
    move_pages=279/239 prlimit64=302/261 sched_setaffinity=203/122 sched_setattr=314/274 sched_setparam=142/118
    sched_setscheduler=144/119 setpriority=141/140 socket=41/198 socketpair=53/199
"""

# Modes, owners and attributes of files, which Landlock leaves open; libraries set them on copies and mind a refusal.
# Priorities and sessions of processes: who stays in a worker's group ends with it. These do nothing and say that all
# is well. Not so times of files: setting them is how `touch` looks for a file.
SILENT = """
    chmod=90/- chown=92/- fchmod=91/52 fchmodat=268/53 fchmodat2=452 fchown=93/55 fchownat=260/54
    file_setattr=469 fremovexattr=199/16 fsetxattr=190/7 ioprio_set=251/30 lchown=94/- lremovexattr=198/15
    lsetxattr=189/6 removexattr=197/14 removexattrat=466 setpgid=109/154 setsid=112/157 setxattr=188/5
    setxattrat=463
"""

GROUPS = "setpgid=109/154"
"""Of these, what a process that forks workers does."""

# They reach other processes, the system, or what all processes share.
REFUSED = """
    acct=163/89 add_key=248/217 adjtimex=159/171 bpf=321/280 chroot=161/51 clock_adjtime=305/266
    clock_settime=227/112 delete_module=176/106 fanotify_init=300/262 fanotify_mark=301/263 finit_module=313/273
    fsconfig=431 fsmount=432 fsopen=430 fspick=433 init_module=175/105 io_uring_enter=426 io_uring_register=427
    io_uring_setup=425 ioperm=173/- iopl=172/- kcmp=312/272 kexec_file_load=320/294 kexec_load=246/104
    keyctl=250/219 lsm_set_self_attr=460 migrate_pages=256/238 modify_ldt=154/- mount=165/40 mount_setattr=442
    move_mount=429 mq_getsetattr=245/185 mq_notify=244/184 mq_open=240/180 mq_timedreceive=243/183
    mq_timedsend=242/182 mq_unlink=241/181 msgctl=71/187 msgget=68/186 msgrcv=70/188 msgsnd=69/189
    open_by_handle_at=304/265 open_tree=428 open_tree_attr=467 perf_event_open=298/241 pidfd_getfd=438
    pidfd_send_signal=424 pivot_root=155/41 process_madvise=440 process_mrelease=448 process_vm_readv=310/270
    process_vm_writev=311/271 ptrace=101/117 quotactl=179/60 quotactl_fd=443 reboot=169/142 request_key=249/218
    semctl=66/191 semget=64/190 semop=65/193 semtimedop=220/192 setdomainname=171/162 sethostname=170/161
    setns=308/268 settimeofday=164/170 shmat=30/196 shmctl=31/195 shmdt=67/197 shmget=29/194 swapoff=168/225
    swapon=167/224 syslog=103/116 umount2=166/39 unshare=272/97 userfaultfd=323/282 ustat=136/- vhangup=153/58
"""


def numbers(calls: str, machine: str) -> Mapping[str, int]:
    """Numbers of calls, by name.

    Args:
        calls: One of the tables above.
        machine: One of `MACHINES`; calls that it doesn't have are left out.
    """
    found = {}
    for name, text in (entry.split("=") for entry in calls.split()):
        by_machine = dict(zip(MACHINES, text.split("/") * 2, strict=False))
        if by_machine[machine] != "-":
            found[name] = int(by_machine[machine])
    return found
