"""One Slurm for all tests, and sweeps over it."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import insist
from tests.slurm import packages
from tests.slurm.cluster import Cluster, running
from tests.workflow.sweeps import Sweeps

# A job is asked after soon, and its log is kept; the nodes have two CPUs.
QUICK = (
    *("--slurm-init-seconds-before-status-checks", "1", "--slurm-keep-successful-logs"),
    *("--set-threads", "analyse=2"),
)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A Slurm of two virtual nodes."""
    insist("slurm", "root", "unshare", "two-cpus")
    slurm = packages.here()
    assert slurm is not None
    with running(slurm) as one:
        yield one


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


class OnCluster(Sweeps):
    """A project that is swept by way of Slurm."""

    cluster: Cluster

    def environment(self) -> dict[str, str]:
        plain = super().environment()
        path = os.pathsep.join([str(self.cluster.slurm.programs), plain["PATH"]])
        return plain | self.cluster.variables | {"PATH": path}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        words = ["snakemake", "--workflow-profile", "profiles/slurm", *QUICK, *arguments]
        log = (self.folder / "sweep.log").open("w")
        with log:
            return subprocess.Popen(
                words,
                cwd=self.folder,
                env=self.environment(),
                stdout=log,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def on_node(self, node: str, *words: str) -> str:
        """Run a command on a node, and return what it printed."""
        command = ["srun", f"--nodelist={node}", "--exclusive", "--mem=0", *words]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def said(self) -> str:
        """What the sweep printed, and what its jobs did."""
        logs = [self.folder / "sweep.log", *sorted((self.folder / "logs").rglob("*.log"))]
        return "\n".join(f"--- {log}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)


def on(cluster: Cluster, project: Sweeps) -> OnCluster:
    """The project, swept by way of this cluster."""
    one = OnCluster(project.folder, project.cache)
    one.cluster = cluster
    return one
