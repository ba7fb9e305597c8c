"""The threads of a trace's lines: the hash that numbers them is undone, and the addresses lead to threads."""

import os
import threading

from castmates.linux.processes import tids_of
from castmates.traces.xspace import address_of


def test_a_line_of_a_real_trace_is_the_hash_of_a_control_block():
    # Of a trace of TensorFlow 2.20 on x86-64: its main thread, and a thread of one of its pools.
    assert address_of(12695068925800923937) == 0x7F753788CB80
    assert address_of(10653801072809950639) == 0x7F74FF7FE6C0
    assert address_of(12345) is None, "a thread's own number is no hash"


def test_addresses_of_control_blocks_lead_to_the_threads_of_a_process():
    over = threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        known = {thread.ident: thread.native_id for thread in [*threads, threading.main_thread()]}
        assert tids_of(os.getpid(), [*known, 0x1000]) == known, "and what is no address is left out"
        assert tids_of(2**22 - 1, list(known)) == {}
    finally:
        over.set()
        for thread in threads:
            thread.join()
