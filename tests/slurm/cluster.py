"""A Slurm of two virtual nodes in a temporary folder, with ports of its own; it ends only what it started.

Each node has its own name and its own /run/lock, as two machines have: they share the CPUs.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from castmates.study import planning
from tests.slurm.packages import CONF, Slurm

NODES = {"n1": "old", "n2": "new"}  # with their feature
CPUS = 2
MEMORY = 6000  # MB of each node, as Slurm counts; nothing enforces it
CONFIGURATION = """\
ClusterName=castmates
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
PluginDir={plugins}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
MinJobAge=3600
KillWait=5
JobRequeue=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SchedulerParameters=sched_min_interval=100000,bf_interval=1,batch_sched_delay=0
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=60 State=UP OverSubscribe=NO
"""
# In its own namespaces: its name, as two machines have two, its locks, its processor, and a module of ours with which
# planning fails. $1 is the node, $2 its processor, $3 and $4 are the module in its new and its usual place, the rest is
# the node's slurmd.
NODE = """\
hostname "$1" && mount -t tmpfs -o mode=1777 tmpfs /run/lock && mount --bind "$2" /proc/cpuinfo \\
  && mount --bind "$3" "$4" && shift 4 && exec "$@"
"""
PLANNING = Path(planning.__file__)
NEVER = "\n\ndef extend(*_, **__):\n    raise RuntimeError('a job of a node planned')\n"


class Cluster:
    """A running Slurm."""

    def __init__(self, slurm: Slurm, folder: Path) -> None:
        self.slurm, self.folder = slurm, folder
        self._running: list[subprocess.Popen[bytes]] = []

    @property
    def variables(self) -> dict[str, str]:
        """What a user of this cluster has in the environment."""
        path = os.pathsep.join([str(self.slurm.programs), os.environ["PATH"]])
        conf = str(self.folder / "slurm.conf")
        # What Python compiles of the module with which planning fails is nothing to keep.
        return {"SLURM_CONF": conf, CONF: conf, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self) -> None:
        """Start everything, and wait until both nodes are idle."""
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        self._write_configuration()
        self._daemon(
            "munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket", f"--key-file={key}",
            f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
            f"--seed-file={self.folder}/munged.seed",
        )  # fmt: skip
        self.wait_for(lambda: (self.folder / "munge.socket").exists(), "munged")
        self._daemon("slurmctld", "-D")
        for node in NODES:
            self.start_node(node)
        self.wait_for(lambda: set(self.states().values()) == {"idle"}, "two idle nodes")

    def start_node(self, node: str) -> None:
        """Start the daemon of one node."""
        (self.folder / f"spool.{node}").mkdir(exist_ok=True)
        words = [str(self.slurm.programs / "slurmd"), "-D", "-N", node, "-d", str(self.slurm.step)]
        never = self.folder / PLANNING.name
        never.write_text(PLANNING.read_text() + NEVER)
        self.processor(node).write_text(Path("/proc/cpuinfo").read_text())
        places = [str(self.processor(node)), str(never), str(PLANNING)]
        self._start(["unshare", "--mount", "--uts", "sh", "-c", NODE, "node", node, *places, *words])

    def processor(self, node: str) -> Path:
        """What the node has in place of /proc/cpuinfo."""
        return self.folder / f"cpuinfo.{node}"

    @contextmanager
    def another_processor(self, node: str, model: str) -> Iterator[None]:
        """Let the processor of this node be another one."""
        file = self.processor(node)
        usual = file.read_text()
        file.write_text(re.sub(r"(?<=model name\t: ).*", model, usual))
        try:
            yield
        finally:
            file.write_text(usual)

    def end(self) -> None:
        """End the jobs, then the daemons."""
        with suppress(subprocess.SubprocessError):
            self.call("scancel", "--user", str(os.getuid()))
            self.wait_for(lambda: not self.call("squeue", "--noheader"), "the end of all jobs")
        for process in reversed(self._running):
            process.terminate()
        for process in reversed(self._running):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()

    def call(self, *words: str) -> str:
        """Run a program of Slurm's, and return what it printed."""
        done = subprocess.run(
            words, env=os.environ | self.variables, capture_output=True, text=True, check=True, timeout=60
        )
        return done.stdout

    def states(self) -> dict[str, str]:
        """The state of each node, as Slurm sees it; none before it answers."""
        try:
            lines = self.call("sinfo", "--noheader", "--Node", "--format=%N %T").splitlines()
        except subprocess.SubprocessError:
            return {}
        return dict(line.split() for line in lines)

    def jobs(self, *states: str) -> list[str]:
        """The numbers of the jobs in these states."""
        return self.call("squeue", "--noheader", f"--states={','.join(states)}", "--format=%A").split()

    def about(self, job: str) -> dict[str, str]:
        """What Slurm knows of a job, or still knows."""
        words = self.call("scontrol", "--oneliner", "show", "job", job).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def wait_for(self, true: object, what: str, seconds: float = 60) -> None:
        """Wait until something holds; show the logs where it does not."""
        assert callable(true)
        deadline = time.monotonic() + seconds
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come; {self._last_words()}")
            time.sleep(0.1)

    def _write_configuration(self) -> None:
        ports = _free_ports(1 + len(NODES))
        host = socket.gethostname().partition(".")[0]
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={CPUS} RealMemory={MEMORY} "
            f"Features={feature}"
            for (node, feature), port in zip(NODES.items(), ports[1:], strict=True)
        )
        text = CONFIGURATION.format(
            host=host, ports=ports, user=_user(), folder=self.folder, plugins=self.slurm.plugins, nodes=nodes,
            names=",".join(NODES),
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(text)

    def _daemon(self, program: str, *options: str) -> None:
        self._start([str(self.slurm.programs / program), *options])

    def _start(self, words: Sequence[str]) -> None:
        log = (self.folder / "daemons.log").open("ab")
        # slurmstepd, which slurmd starts without our wrapper, finds its libraries by this.
        environment = os.environ | self.variables | {"LD_LIBRARY_PATH": self.slurm.libraries}
        with log:
            process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._running.append(process)

    def _last_words(self) -> str:
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-1500:]}" for log in logs)


@contextmanager
def running(slurm: Slurm) -> Iterator[Cluster]:
    """Run a cluster for as long as it is used; its folder is short, since the paths of sockets are bounded."""
    folder = Path(tempfile.mkdtemp(prefix="castmates-slurm-"))
    cluster = Cluster(slurm, folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def _user() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name
