"""The wall clock may jump: it stamps, and measures nothing."""

import json
import subprocess
import time

import pandas as pd
import pytest

from tests.runner.stage import PYTHON, counter, plan_of
from tests.runner.test_launch import start_runner

pytestmark = pytest.mark.quiet

# The wall clock is an hour ahead and an hour behind in turn. (The machine's own is not for a test to set.)
JUMPY = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static int turn;
int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME)
        now->tv_sec += turn++ % 2 ? 3600 : -3600;
    return result;
}
time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return out ? (*out = now.tv_sec) : now.tv_sec;
}
int gettimeofday(struct timeval *out, void *zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


@pytest.mark.needs("two-cpus")
def test_a_wall_clock_that_jumps_by_hours_changes_no_figure(compiler, cache, tmp_path, monkeypatch):
    (tmp_path / "jumpy.c").write_text(JUMPY)
    library = tmp_path / "jumpy.so"
    subprocess.run([*compiler, "-shared", "-fPIC", "-o", library, tmp_path / "jumpy.c"], check=True)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    ask = [PYTHON, "-c", "import time; print(abs(time.time() - time.time()) > 3600)"]
    if subprocess.run(ask, capture_output=True, text=True, check=True).stdout != "True\n":
        pytest.skip("the interpreter's clock cannot be replaced here")
    plan = plan_of({"lead": counter(), "beside": counter()}, ["beside"], cache, rounds=1)
    began = time.monotonic()
    assert start_runner(plan, cache, tmp_path).wait(400) == 0
    lasted = time.monotonic() - began
    record = json.loads((tmp_path / "out/launch.json").read_text())
    assert record["status"] == "measured"
    assert all(0 < record["seconds"][part] < lasted for part in ("launch", "warm_up", "measure", "total"))
    windows = pd.read_parquet(tmp_path / "out/windows.parquet")
    assert windows["open_s"].between(0.05, min(lasted, 3600)).all()
