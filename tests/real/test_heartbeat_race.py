"""A heartbeat file that is read while another process writes it at full speed."""

import os
import subprocess
import sys

from castmates.workloads.heartbeat import VARIABLE, Reader, State, create

RACER = """
import sys
from castmates.workloads.heartbeat import Writer
writer = Writer.from_environment()
writer.ready()
for _ in range(int(sys.argv[1])):
    writer.beat(3)
writer.finished()
"""


def test_a_reader_beside_a_racing_writer_sees_no_torn_record(tmp_path):
    """A small ring and a writer at full speed: every record that is handed out is whole."""
    path, total = tmp_path / "beats", 200_000
    create(path, capacity=16)
    writer = subprocess.Popen([sys.executable, "-c", RACER, str(total)], env={**os.environ, VARIABLE: str(path)})
    seen = lost = since = 0
    last_ns = 0
    with Reader(path) as reader:
        while True:
            over = reader.state is State.FINISHED or writer.poll() is not None
            beats = reader.beats(since)
            for index, (ns, units) in enumerate(beats.records, start=since + beats.lost):
                assert units == 3 * (index + 1)
                assert ns >= last_ns
                last_ns = ns
            seen, lost, since = seen + len(beats.records), lost + beats.lost, beats.head
            if over:
                break
    assert writer.wait() == 0
    assert seen + lost == since == total
