"""The keeper that counts: calls of functions in programs of others, known by their own count."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from castmates.linux import probe_points
from castmates.linux.probe_points import NoPlace, Place
from castmates.workloads import heartbeat
from castmates.workloads.heartbeat import State
from tests.needs import lacks
from tests.waiting import PATIENCE

EACH = 1000
# Calls from a thread, from a child and from its own; the cold one is never called.
PROGRAM = f"""
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void step(volatile int *x) {{ for (int i = 0; i < 2000; i++) (*x)++; }}
__attribute__((noinline)) void never(volatile int *x) {{ (*x)--; }}
static void *work(void *a) {{ int x = 0; for (int i = 0; i < {EACH}; i++) step(&x); return a; }}
int main(int count, char **words) {{
    pthread_t thread;
    int x = 0;
    if (count > 5)
        never(&x);
    pthread_create(&thread, 0, work, 0);
    pid_t child = fork();
    work(0);
    if (child == 0)
        _exit(0);
    wait(0);
    pthread_join(thread, 0);
    return count > 1 ? 3 : 0;
}}
"""

# Each process forks the next one on the next of these CPUs; the last one makes the call.
CHAIN = """
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) void step(volatile int *x) { (*x)++; }
int main(int count, char **words) {
    int x = 0;
    puts("begun");
    fflush(stdout);
    getchar();
    for (int one = 1; one < count; one++) {
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(atoi(words[one]), &own);
        sched_setaffinity(0, sizeof own, &own);
        if (fork() != 0) {
            wait(0);
            if (one == 1)
                puts("done");
            return 0;
        }
    }
    step(&x);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(compiler, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("counted")
    (folder / "own.c").write_text(PROGRAM)
    subprocess.run([*compiler, "-O1", "-pthread", "-w", folder / "own.c", "-o", folder / "own"], check=True)
    return folder / "own"


def counted(kernels: Path, folder: Path, *words: object) -> tuple[int, str, heartbeat.Reader]:
    heartbeat.create(folder / "beats")
    environment = os.environ | {heartbeat.VARIABLE: str(folder / "beats")}
    command = [str(kernels / "count"), *map(str, words)]
    pipes = {"capture_output": True, "text": True, "start_new_session": True}
    done = subprocess.run(command, env=environment, timeout=PATIENCE, check=False, **pipes)
    return done.returncode, done.stderr, heartbeat.Reader(folder / "beats")


def options(calls: str) -> list[str]:
    places = probe_points.find(calls, os.environ["PATH"])
    if why := probe_points.refusal(places):
        lacks("root", why)
    return [word for place in places for word in ("--calls", f"{probe_points.device_type()},{place.words}")]


def test_calls_of_threads_and_children_count_and_those_of_strangers_do_not(kernels, tmp_path, program):
    words = options(f"{program}:step")
    stranger = subprocess.Popen([program], start_new_session=True)
    status, said, reader = counted(kernels, tmp_path, *words, "--", program)
    stranger.wait(PATIENCE)
    records = reader.beats(0).records
    assert (status, said, reader.state) == (0, "", State.FINISHED)
    assert records[-1][1] == 3 * EACH
    times, units = zip(*records, strict=True)
    assert list(times) == sorted(set(times))
    assert list(units) == sorted(set(units))


def test_calls_of_strangers_that_fill_the_records_of_a_frozen_command_are_not_taken_for_its_own(
    kernels, tmp_path, program
):
    """Frozen, the keeper reads nothing; the kernel goes on to record, until there is no room for more."""
    words = options(f"{program}:step")
    heartbeat.create(tmp_path / "beats")
    command = [kernels / "count", *words, "--", "sh", "-c", f"echo; read line; exec {program}"]
    environment = os.environ | {heartbeat.VARIABLE: str(tmp_path / "beats")}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    counting = subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes)
    counting.stdout.readline()
    os.killpg(counting.pid, signal.SIGSTOP)
    for _ in range(3 * len(os.sched_getaffinity(0))):
        subprocess.run([program], check=True, timeout=PATIENCE)
    os.killpg(counting.pid, signal.SIGCONT)
    _, said = counting.communicate("\n", timeout=PATIENCE)
    assert counting.returncode == 4
    assert said.startswith("castmates count: records of calls were lost, and other processes made some of them")
    assert heartbeat.Reader(tmp_path / "beats").state is State.FAILED


def test_a_long_chain_of_forks_from_cpu_to_cpu_is_followed_to_its_end(kernels, compiler, tmp_path):
    """The keeper sees all of them in one look, each fork in the records of another CPU than that of its parent."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        lacks("cpus", "two CPUs are needed")
    (tmp_path / "chain.c").write_text(CHAIN)
    subprocess.run([*compiler, "-O1", "-w", tmp_path / "chain.c", "-o", tmp_path / "chain"], check=True)
    words = options(f"{tmp_path}/chain:step")
    heartbeat.create(tmp_path / "beats")
    command = [kernels / "count", *words, "--", tmp_path / "chain", *map(str, cpus * 5)]
    environment = os.environ | {heartbeat.VARIABLE: str(tmp_path / "beats")}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes) as counting:
        assert counting.stdout.readline() == "begun\n"
        counting.send_signal(signal.SIGSTOP)
        counting.stdin.write("\n")
        counting.stdin.flush()
        assert counting.stdout.readline() == "done\n"
        counting.send_signal(signal.SIGCONT)
    assert counting.returncode == 0
    assert heartbeat.Reader(tmp_path / "beats").beats(0).records[-1][1] == 1


def test_the_database_counts_its_statements_alike(kernels, tmp_path):
    rows, library = 500, "libsqlite3.so.0:sqlite3_step"
    try:
        words = options(library)
        subprocess.run(["sqlite3", "--version"], capture_output=True, check=True)
    except (NoPlace, OSError) as problem:
        lacks("sqlite3", str(problem))
    (tmp_path / "load.sql").write_text("create table t(a);" + "insert into t values(1);\n" * rows)
    status, said, reader = counted(kernels, tmp_path, *words, "--", "sqlite3", ":memory:", f".read {tmp_path}/load.sql")
    assert (status, said) == (0, "")
    (_, units) = reader.beats(0).records[-1]
    assert rows < units < rows + 20, "once for each statement, and a few of its own"


def test_without_a_call_it_is_never_ready_and_ends_as_its_command_does(kernels, tmp_path, program):
    status, said, reader = counted(kernels, tmp_path, *options(f"{program}:never"), "--", program, "x")
    assert (status, said, reader.state, reader.head) == (3, "", State.FAILED, 0)


def test_instructions_are_counted_or_it_says_why_not(kernels, tmp_path, program):
    status, said, reader = counted(kernels, tmp_path, "--instructions", "--", program)
    if why := probe_points.refusal_of_instructions():
        assert (status, reader.head) == (4, 0)
        assert said.startswith("castmates count: the kernel does not count instructions: "), why
    else:
        assert (status, said) == (0, "")
        assert 3 * EACH * 2000 < reader.beats(0).records[-1][1] < 3 * EACH * 2000 * 30


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "what to count and a command to run are needed"),
        (("--calls", "8", "true"), "must have whole numbers before the file"),
        (("--calls", "8,0x10,bin/true", "true"), "must have whole numbers before the file"),
    ],
)
def test_bad_arguments_are_a_sentence(kernels, tmp_path, words, said):
    status, heard, _ = counted(kernels, tmp_path, *words)
    assert status == 2
    assert said in heard


def test_a_function_is_found_where_another_tool_sees_it(program):
    (place,) = probe_points.find(f"{program}:step", "")
    table = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    (address,) = [line.split()[0] for line in table.splitlines() if line.endswith(" step")]
    assert place == Place(program.resolve(), int(address, 16), 0), "addresses of this program are offsets in its file"


def test_functions_of_one_name_are_all_found(compiler, tmp_path):
    for name in ("one", "two"):
        step = "static __attribute__((noinline)) int step(volatile int *x) { return (*x)++; }"
        (tmp_path / f"{name}.c").write_text(f"{step}\nint {name}(volatile int *x) {{ return step(x); }}\n")
    (tmp_path / "main.c").write_text(
        "int one(int *), two(int *);\nint main(void) { int x = 0; return one(&x) + two(&x); }"
    )
    sources = [tmp_path / f"{name}.c" for name in ("one", "two", "main")]
    subprocess.run([*compiler, "-O1", "-w", *sources, "-o", tmp_path / "both"], check=True)
    table = subprocess.run(["nm", tmp_path / "both"], capture_output=True, text=True, check=True).stdout
    addresses = sorted(int(line.split()[0], 16) for line in table.splitlines() if line.endswith(" step"))
    assert len(addresses) == 2
    assert [place.offset for place in probe_points.find(f"{tmp_path}/both:step", "")] == addresses


def test_a_file_without_sections_is_a_sentence(program, tmp_path):
    data = bytearray(program.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)  # where its table of sections lies, and how many there are
    (tmp_path / "bare").write_bytes(data)
    for what, said in (("step", "it was stripped"), ("mine:step", "cannot be read as an ELF file")):
        with pytest.raises(NoPlace, match=said):
            probe_points.find(f"{tmp_path}/bare:{what}", "")


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ("{program}:stepp", "it has no function 'stepp'; of the"),
        ("{program}:mine:step", "has no USDT probe 'mine:step'; it has none"),
        ("no-such-program:step", "there is no program or shared library 'no-such-program' here"),
        ("/etc/passwd:step", "is no ELF program of 64 bits"),
    ],
)
def test_what_is_not_there_is_a_sentence(program, calls, said):
    with pytest.raises(NoPlace, match=said):
        probe_points.find(calls.format(program=program), "")
