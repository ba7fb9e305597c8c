"""Follows a program instruction by instruction, with ptrace: slow, and right on any processor."""

import ctypes
import os
import signal
from collections import Counter

import pytest

from castmates.trials.counters.program import known
from tests.needs import insist

SEIZE, INTERRUPT, STEP, PEEK = 0x4206, 0x4207, 9, 3
INSTRUCTION_POINTER = 16 * 8  # its place in the registers of x86-64


def visits_of(command, units):
    """Let `known` do so many units step by step; how often each instruction's address was visited."""
    insist("x86-64")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    visits = Counter()
    with known(command) as process:
        if libc.ptrace(SEIZE, process.pid, None, None) != 0:
            pytest.skip("this user may not trace its own processes")
        libc.ptrace(INTERRUPT, process.pid, None, None)
        os.waitpid(process.pid, 0)
        process._process.stdin.write(f"{units}\n")
        process._process.stdin.flush()
        output = process._process.stdout.fileno()
        os.set_blocking(output, False)
        while visits.total() % 64 or not _said(output):
            visits[libc.ptrace(PEEK, process.pid, INSTRUCTION_POINTER, None)] += 1
            libc.ptrace(STEP, process.pid, None, None)
            _, status = os.waitpid(process.pid, 0)
            assert os.WIFSTOPPED(status)
            assert os.WSTOPSIG(status) == signal.SIGTRAP
    return visits


def _said(output):
    try:
        return bool(os.read(output, 4096))
    except BlockingIOError:
        return False
