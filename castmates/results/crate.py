"""The names of a published study in its crate, which `castmates paper` writes and `castmates sweep --replay` reads."""

METADATA = "ro-crate-metadata.json"
PLAN, MACHINE = "plan.json", "machine.json"
DATA, TABLES = "data", "tables"  # the study's tables in a crate, and in the folder of its results
REPLAY = "replay"  # the folder with what the study needs to be measured by others
STUDY, WORKLOADS = f"{REPLAY}/study.yaml", f"{REPLAY}/workloads/published.yaml"
