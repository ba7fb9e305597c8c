"""The numbers of a process's threads from the addresses of their control blocks (pthread_t), read in its memory.

The C library keeps a thread's number in its block, at one place for all threads, which its versions put elsewhere: it
is found by that at this place every block has the number of a thread that the process has, each another one.
"""

import os
from array import array
from collections import Counter
from collections.abc import Collection, Mapping

from castmates.linux.processes import threads_of

BLOCK = 2048  # bytes of a control block that are looked at


def tids_of(pid: int, addresses: Collection[int]) -> Mapping[int, int]:
    """The thread of each address; those of which the process shows nothing are left out."""
    there = set(threads_of(pid))
    blocks = _blocks(pid, addresses)
    if not there or not blocks:
        return {}
    words = {address: array("I", block) for address, block in blocks.items()}
    fits = Counter(place for each in words.values() for place, word in enumerate(each) if word in there)
    for place, count in fits.most_common():
        found = {address: each[place] for address, each in words.items() if each[place] in there}
        if len(set(found.values())) == count:
            return found
    return {}


def _blocks(pid: int, addresses: Collection[int]) -> dict[int, bytes]:
    found = {}
    try:
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return {}
    try:
        for address in addresses:
            try:
                block = os.pread(memory, BLOCK, address)
            except (OSError, OverflowError):
                continue
            if len(block) == BLOCK:
                found[address] = block
    finally:
        os.close(memory)
    return found
