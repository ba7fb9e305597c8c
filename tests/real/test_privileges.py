"""What users of one machine can do to each other by way of Castmates: nothing (docs/privileges.md), tried for real."""

import fcntl
import json
import os
import pwd
import signal
import stat
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from uv import find_uv_bin

from castmates.errors import CastmatesError
from castmates.grant import grant, group_rights, perf
from castmates.grant.perf import Grantee, Granting, Step, record, take_back
from castmates.linux import cgroups, tracing_rights
from castmates.linux.owner import myself
from castmates.linux.ownership import refuse_strangers
from castmates.linux.perf_event import TRACEPOINT, Attr, Target, open_event
from castmates.linux.tracing_rights import granted_perf, rights
from castmates.machine.journal import Journal
from castmates.machine.pqos_tool import Pqos
from castmates.rdt.resctrl.tree import KernelTree
from castmates.results.folder import StudyFolder
from castmates.runner.cleanup.restore import heal, restore_everything
from castmates.timeline.tables import write
from castmates.workloads import python_environment
from tests.needs import lacks
from tests.processes import as_user
from tests.unit import timeline_maker
from tests.waiting import wait_for

NOBODY = Grantee("nobody", 65534, 65534)
ROOT = Path(__file__).resolve().parents[2]
SOFTWARE, TASK_CLOCK = 1, 1  # perf's type and number of an event that every kernel has
DEAD = f"castmates-4194305-7-{myself().space}-planted"  # a scratch folder's name whose maker has ended

needs_root = pytest.mark.needs("root")


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTMATES_STATE", str(tmp_path / "state"))


@contextmanager
def sleeper():
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def refused(action, *arguments):
    try:
        action(*arguments)
    except OSError as error:
        return isinstance(error, PermissionError)
    return False


def count(pid, cpu=-1):
    os.close(open_event(Attr(SOFTWARE, TASK_CLOCK), Target(pid, cpu)))


# A granted user and the others.


@needs_root
@pytest.mark.needs("events")
def test_a_granted_user_counts_their_own_processes_and_no_others(state):
    level = Path("/proc/sys/kernel/perf_event_paranoid")
    before = level.read_text()
    try:
        level.write_text("2\n")
    except OSError as problem:
        lacks("events", f"kernel.perf_event_paranoid cannot be set here: {problem.strerror}")
    try:
        perf.give_counting(Granting(NOBODY, record(), print))
        assert level.read_text().strip() == "1"
        with sleeper() as foreign:
            found = as_user(lambda: [refused(count, 0), refused(count, foreign), refused(count, -1, 0)])
        assert found == [False, True, True]
    finally:
        take_back()
        given_back = level.read_text()
        level.write_text(before)
    assert given_back == "2\n"


SOMEBODY, ANOTHER = Grantee("somebody", 54321, 54321), Grantee("another", 54322, 54322)
RAW = 1 << 10  # of what an event is recorded with: a tracepoint's fields


@pytest.fixture
def open_state(monkeypatch):
    """A place for what is granted that other users can look into, as they can into /var/lib."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        monkeypatch.setenv("CASTMATES_STATE", folder)
        yield
        take_back()


@needs_root
@pytest.mark.needs("events", "perf")
def test_a_granted_user_traces_their_own_processes_and_no_others(open_state):
    point = tracing_rights.mounted()
    if point is None:
        lacks("events", "tracefs is not mounted")
    system_calls = tracing_rights.number_of("raw_syscalls:sys_enter", point)
    before, said = (point.stat().st_mode, rights()), []
    assert before[1].level == "everything"  # for root

    def look(pid):
        trace = Attr(TRACEPOINT, system_calls)
        return [rights().level, *(refused(open_event, trace, Target(each), -1, 0, 0, RAW) for each in (0, pid))]

    giver = Granting(SOMEBODY, record(), said.append)
    with sleeper() as others:
        perf.give_counting(giver)
        perf.give_tracing(giver, everything=False)
        assert as_user(lambda: look(others), SOMEBODY.uid) == ["switches and system calls", False, True]
        assert as_user(lambda: rights().level, ANOTHER.uid) == "switches only"
        perf.give_tracing(giver, everything=True)
        copy = granted_perf(SOMEBODY.uid)
        assert as_user(lambda: rights().level, SOMEBODY.uid) == "everything"
        assert as_user(lambda: os.access(copy, os.W_OK), SOMEBODY.uid) is False
        assert as_user(lambda: os.access(copy, os.X_OK), ANOTHER.uid) is False
        assert giver.refused == []
        take_back()
        assert not copy.exists()
        assert (point.stat().st_mode, rights()) == before
        assert as_user(lambda: rights().syscalls, SOMEBODY.uid) is False


@needs_root
@pytest.mark.needs("perf")
def test_a_perf_that_sees_everybody_is_for_one_user_and_no_group(open_state):
    """On Debian nobody's group is that of other users too."""
    giver = Granting(NOBODY, record(), lambda _: None)
    perf.give_tracing(giver, everything=True)
    if len([entry for entry in pwd.getpwall() if entry.pw_gid == NOBODY.gid]) < 2:
        pytest.skip("nobody has a group without others here")
    assert "would get it too" in giver.refused[0]
    assert not granted_perf(NOBODY.uid).exists()


@needs_root
def test_a_granted_user_moves_freezes_and_pins_no_process_of_others(state):
    if cgroups.find_home() is None:
        lacks("cgroup", "there are no control groups of version 2 here that root may use")
    shell = os.fork()
    if shell == 0:
        os.setgroups([])
        os.setgid(NOBODY.gid)
        os.setuid(NOBODY.uid)
        signal.pause()
        os._exit(0)
    try:
        while group_rights.uid_of(shell) != NOBODY.uid:
            pass
        home = cgroups.group_of(shell, cgroups.unified)
        group_rights.give_control_groups(Granting(NOBODY, record(), print), shell)
        mine = home / "castmates-65534"
        cpus = os.sched_getaffinity(0)
        with sleeper() as foreign:
            found = as_user(
                lambda: [
                    refused(cgroups.move, mine, foreign),
                    refused(Path(home / "cgroup.freeze").write_text, "1"),
                    refused(Path(mine / "cgroup.freeze").write_text, "1"),  # only groups below the user's own
                    refused(os.sched_setaffinity, foreign, {0}),
                    refused(os.setpriority, os.PRIO_PROCESS, foreign, 5),
                    refused(os.kill, foreign, signal.SIGSTOP),
                ]
            )
            assert found == [True] * 6
            assert os.sched_getaffinity(foreign) == cpus
            assert cgroups.group_of(foreign, cgroups.unified) != mine
    finally:
        with suppress(ProcessLookupError):
            os.kill(shell, signal.SIGKILL)
            os.waitpid(shell, 0)
        take_back()


# Temporary folders, journals and caches that others have planted.


@pytest.fixture
def shared(tmp_path, monkeypatch):
    """A temporary folder like /tmp, in which everybody makes things."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder.stat().st_uid == os.geteuid() and str(folder).count("/") > 1:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    place = tmp_path / "tmp"
    place.mkdir()
    place.chmod(0o1777)
    monkeypatch.setenv("TMPDIR", str(place))
    return place


@needs_root
def test_roots_cleaning_up_leaves_what_others_have_planted(state, shared, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")

    def plant():
        os.chdir(shared)
        Path(DEAD).mkdir()
        Path(DEAD, "file").write_text("x")
        Path(f"{DEAD}-link").symlink_to(precious)
        Path(f"{DEAD}-file").write_text("x")
        return "planted"

    assert as_user(plant) == "planted"
    (shared / f"{DEAD}-ours").mkdir()
    (shared / f"{DEAD}-ours/link").symlink_to(precious)
    heal()
    assert {path.name for path in shared.iterdir()} == {DEAD, f"{DEAD}-link", f"{DEAD}-file"}
    assert (shared / DEAD / "file").read_text() == "x"
    assert (precious / "file").read_text() == "x"


@needs_root
def test_roots_cleaning_up_believes_no_journal_of_others(shared, tmp_path, monkeypatch):
    """An entry that root believed would give a file away, whatever it is."""
    precious = tmp_path / "precious"
    precious.write_text("x")
    precious.chmod(0o600)
    entry = {
        "open": 1,
        "change": {"knob": "k", "kind": "owner", "target": str(precious), "former": "65534:65534", "new": "0:0"},
        "owner": {"pid": 4194305, "born": 7, "boot": myself().boot, "space": myself().space},
        "purpose": "p",
        "at": "now",
    }
    text = json.dumps(entry) + "\n"
    ours = Journal(tmp_path / "ours")
    ours.path.parent.mkdir()
    ours.path.write_text(text)
    assert len(ours.entries()) == 1, "the entry is one that root's own journal might hold"

    def plant():
        (shared / "state").mkdir()
        (shared / "state/journal").write_text(text)
        (shared / "linked").mkdir()
        (shared / "linked/journal").symlink_to(shared / "state/journal")
        return "planted"

    assert as_user(plant) == "planted"
    for folder in ("state", "linked"):
        monkeypatch.setenv("CASTMATES_STATE", str(shared / folder))
        heal()
        with pytest.raises(CastmatesError, match=r"can(not)? be written"):
            Journal(shared / folder).announce([], "p")
    assert precious.stat().st_uid == os.geteuid()


@needs_root
def test_files_of_an_old_tracefs_that_everybody_may_read_are_not_opened_by_a_grant(state, tmp_path):
    """Until Linux 5.17 they had these modes, and only the folder's own kept users out."""
    point = tmp_path / "sys/kernel/tracing"
    point.mkdir(parents=True, mode=0o700)
    (tmp_path / "proc/self").mkdir(parents=True)
    line = "25 1 0:6 / /sys/kernel/tracing rw,nosuid shared:1 - tracefs tracefs rw\n"
    (tmp_path / "proc/self/mountinfo").write_text(line)
    for name, mode in (("trace", 0o644), ("trace_pipe", 0o444)):
        (point / name).touch()
        (point / name).chmod(mode)
    giver = Granting(NOBODY, record(), lambda _: None)
    perf.give_tracing(giver, everything=False, root=tmp_path)
    assert "chmod o-rw" in giver.refused[0]
    assert stat.S_IMODE(point.stat().st_mode) == 0o700
    (point / "trace").chmod(0o640)
    (point / "trace_pipe").chmod(0o440)
    perf.give_tracing(giver, everything=False, root=tmp_path)
    assert stat.S_IMODE(point.stat().st_mode) == 0o701
    take_back()


# Locks: whoever may open a file may lock it, for ever.


@contextmanager
def locked_by_nobody(path, how=os.O_RDONLY):
    """What somebody else may open is locked, and stays so."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY.gid)
        os.setuid(NOBODY.uid)
        with suppress(OSError):
            fcntl.flock(os.open(path, how), fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(writing, b".")
        signal.pause()
        os._exit(0)
    os.read(reading, 1)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


@needs_root
def test_root_restores_and_takes_grants_back_whoever_holds_the_machine(open_state, monkeypatch, capsys):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        path = Path(folder) / "castmates.lock"
        monkeypatch.setattr("castmates.machine.lock.lock_path", lambda: path)
        path.touch()
        path.chmod(0o666)
        knob = Path(folder) / "knob"
        knob.touch()
        for repair in (lambda: grant.undo(print), restore_everything):
            Granting(NOBODY, record(), print).give(Step("a knob", "mode", knob, "604", ""))
            assert stat.S_IMODE(knob.stat().st_mode) == 0o604
            with locked_by_nobody(path, os.O_RDWR) as holder, locked_by_nobody(record().path):
                repair()
            assert f"in use by nobody (process {holder}, " in "".join(capsys.readouterr())
        assert stat.S_IMODE(knob.stat().st_mode) == 0o604, "restore leaves what is granted"
        grant.undo(print)
        assert stat.S_IMODE(knob.stat().st_mode) != 0o604


@needs_root
def test_root_changes_groups_of_resctrl_whoever_locks_it(shared, monkeypatch):
    monkeypatch.setattr("castmates.rdt.resctrl.tree.LOCK_S", 0.1)
    with locked_by_nobody(shared), KernelTree(shared).locked():
        pass
    with KernelTree(shared).locked(), pytest.raises(CastmatesError, match="locked for"), KernelTree(shared).locked():
        pass


@needs_root
def test_root_calls_pqos_whoever_would_lock_it(shared, monkeypatch):
    monkeypatch.setattr("castmates.machine.pqos_tool.LOCK_S", 0.1)
    tool = Pqos("msr", "/bin/true", shared / "lock")
    tool.call()
    with locked_by_nobody(shared / "lock"):
        tool.call()


# A trace that is shown in a browser.


@needs_root
def test_a_trace_in_a_browser_is_for_its_user_alone(tmp_path):
    """Every user reaches the port, and sees with which words programs are started."""
    write(timeline_maker.made(100), StudyFolder(tmp_path / "results/one").trace("lead+stream"))
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words.new && mv {tmp_path}/words.new {tmp_path}/words\n')
    browser.chmod(0o755)
    serving = subprocess.Popen(
        [sys.executable, "-P", "-m", "castmates", "trace", "open", "results/one", "lead+stream"],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"BROWSER": f"{browser} %s", "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        address = next(line.strip() for line in serving.stdout if line.startswith("http"))
        root = address.partition("#")[0].rpartition("/")[0]
        token, port = root.rpartition("/")[2], urlsplit(address).port
        wait_for((tmp_path / "words").exists, "the browser")
        way = Path(unquote(urlsplit((tmp_path / "words").read_text().strip()).path))
        assert token in way.read_text()
        assert stat.S_IMODE(way.stat().st_mode) == 0o600

        def spy():
            seen = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if os.access(file, os.R_OK)]
            tried = [status_of(f"http://127.0.0.1:{port}/{path}") for path in ("trace.pftrace", "", "open.html", "x/y")]
            return [tried, any(token.encode() in words for words in seen), refused(way.read_text)]

        assert status_of(f"{root}/trace.pftrace") == 200
        assert as_user(spy, SOMEBODY.uid) == [[404] * 4, False, True]
    finally:
        serving.terminate()
        serving.wait()
        serving.stdout.close()


def status_of(address):
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as problem:
        return problem.code


# What a folder has us run: workflow, profile, modules, catalogue, programs in the cache.

MARKS = "import os; open('ran', 'a').write(str(os.geteuid()))\n"
PLANTS = {
    "Snakefile": MARKS,
    "profiles/default/config.yaml": f"__use_yte__: true\n__definitions__:\n  - {MARKS}",
    "snakemake.py": MARKS,
    "castmates/__init__.py": MARKS,
    "workloads/kernels.yaml": "workloads: {chase: {command: [sh, -c, 'echo > ran'], progress: runs}}\n",
    ".cache/environments/native/bin/chase": "#!/bin/sh\necho > ran\n",
    "results/mine/plan.json": "{}",
}
MINE = "name: mine\nplatform: modelled\nleads: [chase]\nantagonists: [stream]\nbudget: {launches: 3}\n"


def plant(folder, names):
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PLANTS[name])
    return "planted"


def castmates(folder, *words, **variables):
    variables = {"CASTMATES_CACHE": str(folder / ".cache"), "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, "-P", "-m", "castmates", *words],
        cwd=folder, capture_output=True, text=True, timeout=300, check=False, env=os.environ | variables,
    )  # fmt: skip


@needs_root
@pytest.mark.parametrize("name", sorted({*PLANTS} - {"snakemake.py", "castmates/__init__.py"}))  # those: see below
def test_what_others_plant_in_a_shared_folder_is_not_run(shared, name):
    """In a folder that was open when the thing was planted, and no longer is."""
    (shared / "mine.yaml").write_text(MINE)
    assert as_user(lambda: plant(shared, [name])) == "planted"
    shared.chmod(0o755)
    done = castmates(shared, "sweep", "mine.yaml")
    assert done.returncode == 1
    assert "belongs to nobody, and what stands there would be run with your rights" in done.stderr
    assert not (shared / "ran").exists()


@needs_root
@pytest.mark.parametrize(
    "words", [["sweep", "mine.yaml"], ["internals", "build-inputs", "text"], ["workloads", "check", "chase"]]
)
def test_nothing_is_run_in_a_folder_that_is_open_to_everybody(shared, words):
    (shared / "mine.yaml").write_text(MINE)
    assert as_user(lambda: plant(shared, PLANTS)) == "planted"
    done = castmates(shared, *words)
    assert done.returncode == 1
    assert "may be written by every user" in done.stderr
    assert not (shared / "ran").exists()


def test_no_module_is_taken_from_the_folder_of_a_sweep(tmp_path):
    plant(tmp_path, ["snakemake.py", "castmates/__init__.py"])
    (tmp_path / "yaml.py").write_text(MARKS)
    (tmp_path / "mine.yaml").write_text(MINE)
    for words in (["sweep", "mine.yaml", "--cores", "1", "--dry-run"], ["internals", "build-inputs", "text"]):
        done = castmates(tmp_path, *words)
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_uv_takes_no_settings_from_the_folder_of_a_sweep_or_above(tmp_path, monkeypatch):
    """Its cache holds packages that are unpacked, and that nothing checks again."""
    (tmp_path / "uv.toml").write_text(f'cache-dir = "{tmp_path}/theirs"\n')
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    planted = subprocess.run([find_uv_bin(), "cache", "dir"], capture_output=True, text=True, check=True).stdout
    assert "theirs" in planted
    assert "theirs" not in python_environment._uv_answer(["cache", "dir"])


@needs_root
def test_a_catalogue_of_others_beside_a_study_is_not_run(shared, tmp_path):
    """From a folder of one's own, with a study of one's own in a shared one; `plan` names what they replace."""
    home = tmp_path / "home"
    home.mkdir()
    (shared / "mine.yaml").write_text(MINE.replace("platform: modelled\n", ""))
    assert as_user(lambda: plant(shared, ["workloads/kernels.yaml"])) == "planted"
    done = castmates(home, "sweep", str(shared / "mine.yaml"))
    assert (done.returncode, "nobody" in done.stderr) == (1, True)
    done = castmates(shared, "plan", "mine.yaml")
    assert (done.returncode, "workloads/kernels.yaml replaces chase" in done.stdout) == (0, True), done.stderr


@needs_root
def test_who_else_may_write_in_a_folder_decides(tmp_path, monkeypatch):
    """Root in the clone of whoever called sudo, or of an owner whom this machine does not know, as in a container."""
    place = tmp_path / "clone"
    (place / "config").mkdir(parents=True)
    monkeypatch.chdir(place)
    monkeypatch.delenv("SUDO_UID", raising=False)
    member = next(entry for entry in pwd.getpwall() if entry.pw_uid not in (0, NOBODY.uid))

    def refusal(uid, mode=0o755, gid=0, inner=0):
        os.chown(place, uid, gid)
        place.chmod(mode)
        os.chown("config", inner or uid, gid)
        try:
            refuse_strangers()
        except CastmatesError as problem:
            return str(problem)
        return ""

    assert refusal(0) == ""
    assert "belongs to nobody" in refusal(NOBODY.uid)
    assert "config belongs to nobody" in refusal(0, inner=NOBODY.uid)
    assert refusal(54321) == ""
    assert f"chmod -R go-w {place}`" in refusal(0, 0o777)
    assert "chmod" not in refusal(0, 0o1777), "what is open to all on purpose, as /tmp, stays so"
    assert member.pw_name in refusal(0, 0o775, member.pw_gid)
    assert refusal(0, 0o775, 54321) == "", "a group without members"
    (place / "profiles").symlink_to("/tmp")
    assert "/tmp may be written by every user" in refusal(0)
    (place / "profiles").unlink()
    monkeypatch.setenv("SUDO_UID", str(NOBODY.uid))
    assert refusal(NOBODY.uid) == ""


# A study of a stranger's, and what looks at it.

STUDY = """
name: stranger
title: hostile
leads: [lead]
antagonists: [one, two, three]
workloads:
  lead: {command: "MARK lead", package: xz-utils}
  one: {command: [sh, -c, "MARK one; $(MARK -print-prog-name=cc1)"], package: gcc}
  two: {command: "./xz -6 file", package: xz-utils, variables: {PATH: FOLDER, LD_PRELOAD: FOLDER/lib.so}}
  three: {command: "MARK {inputs}/text", inputs: text, environment: native}
"""
# Started to find out what this machine is and has: none of these is named by a study. A `sleep` is frozen, to try it.
OURS = {"perf", "git", "systemd-detect-virt", "cc", "gcc", "clang", "dpkg-query", "sleep"}
WATCHED = """
import json, os, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def watch(event, arguments):
    if event == "subprocess.Popen":
        os.write(log, (json.dumps([str(arguments[0]), *map(str, arguments[1])]) + "\\n").encode())
    elif event in ("os.system", "os.exec", "os.posix_spawn", "os.spawn"):
        os.write(log, (json.dumps([str(arguments[0])]) + "\\n").encode())
sys.addaudithook(watch)
sys.argv = ["castmates", *sys.argv[2:]]
from castmates.cli.main import main
main()
"""


@pytest.fixture
def strange(tmp_path):
    """A folder as a stranger may send it: a study, a catalogue, results, and programs of the names that are asked."""
    for name in ("mark", "xz", "gcc", "perf", "git"):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho $0 $@ >> {tmp_path}/ran\n")
        program.chmod(0o755)
    study = STUDY.replace("MARK", str(tmp_path / "mark")).replace("FOLDER", str(tmp_path))
    (tmp_path / "study.yaml").write_text(study)
    mark = tmp_path / "workflow/rules/common.smk"  # by which a clone is known, whose catalogue is then used
    mark.parent.mkdir(parents=True)
    mark.touch()
    for folder in ("config", "envs"):
        subprocess.run(["cp", "-r", ROOT / folder, tmp_path / folder], check=True)
    theirs = study[study.index("workloads:") :]
    (tmp_path / "config/workloads/theirs.yaml").write_text(theirs.replace("  lead:", "  strange:"))
    (tmp_path / "study.yaml").write_text(study[: study.index("workloads:")].replace("[lead]", "[strange]"))
    from tests.unit import study_folder
    from tests.unit.windows_maker import cohort, mix, plan, written

    one = plan([cohort("c", mix("strange@0", "one@1"))], launches=3)
    for hour, name in enumerate(("stranger", "other")):
        started = f"2026-01-05T1{hour}:00:00+00:00"  # measured apart, or they are not compared
        study_folder.write(tmp_path / "results" / name, one, written(one, lambda *_: 100.0), started)
    return tmp_path


COMMANDS = [
    ["plan", "study.yaml", "--all"],
    ["show", "study.yaml", "--progress"],
    ["doctor", "--all"],
    ["workloads"],
    ["show", "results/stranger"],
    ["compare", "results/stranger", "results/other"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_looking_at_a_strangers_study_runs_none_of_its_commands(strange, command):
    log = strange / "started"
    done = subprocess.run(
        [sys.executable, "-P", "-c", WATCHED, log, *command],
        cwd=strange,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={name: word for name, word in os.environ.items() if name != "CC"} | {"PYTHONPATH": str(ROOT)},
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 0 or command[0] == "show", done.stderr
    assert not (strange / "ran").exists(), (strange / "ran").read_text()
    started = [json.loads(line) for line in log.read_text().splitlines()]
    names = {Path(words[0]).name for words in started}
    assert {name for name in names if not name.startswith("python3.")} <= OURS | {
        Path(word).name for word in identities()
    }
    assert not [words for words in started if any(str(strange) in word for word in words[:1])]


def identities():
    from castmates.workloads.identity import IDENTITIES

    return [program for _, program in IDENTITIES]
