"""Modelled studies for tests."""

from castmates.project import Project
from castmates.study import catalogue
from castmates.study.model import Catalogue, Study
from castmates.study.reading import read_keys

WORKLOADS = """
workloads:
  ranking:
    unit: step
    model:
      {compute: 0.004, accesses: 150_000, parallel: 2, reuse: [{size: 2 MiB, share: 30%}, {size: 14 MiB, share: 60%}]}
  flood:
    unit: MiB
    model: {compute: 1.0e-6, accesses: 262_144, units: 16, parallel: 16, writes: 33%}
"""
STUDY = """
name: example
platform: modelled
leads: [ranking]
antagonists: [flood]
controls: null
budget: {launches: 5, rounds: 2, window: 0.3, settle: 0.1, mixes_per_launch: 20, longest_launch: 3600}
"""
SWEEPS = "cache: {sweeps: [{split: 6}, {lead_ways: 2}]}\n"
QUIET = "model: {noise: {window: 0%, scene: 0%, launch: 0%, drift: 0%}}\n"


def project_of(tmp_path, text=STUDY):
    """A project on a study of this text, with the workloads above and no folder of workloads."""
    study = read_keys(Study, text, "study.yaml")
    workloads = catalogue.gather_catalogue(
        [("w.yaml", read_keys(Catalogue, WORKLOADS, "w.yaml"))], study, "study.yaml", ()
    )
    catalogue.check_names(study, workloads, "study.yaml")
    return Project(tmp_path / "study.yaml", study, catalogue.as_played(study, workloads, "study.yaml"), "")
