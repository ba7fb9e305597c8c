"""Writes what resctrl shows on machines that were recorded or described, as plain files."""

from contextlib import suppress
from pathlib import Path

XEON = {  # 11 ways, two sockets whose cache ids have a gap, mounted with cdp off
    "schemata": "    MB:0=100;2=100\n    L3:0=7ff;2=7ff\n",
    "size": "    MB:0=100;2=100\n    L3:0=17301504;2=17301504\n",
    "info/L3/cbm_mask": "7ff",
    "info/L3/min_cbm_bits": "1",
    "info/L3/num_closids": "16",
    "info/L3/shareable_bits": "600",
    "info/L3/sparse_masks": "0",
    "info/MB/bandwidth_gran": "10",
    "info/MB/delay_linear": "1",
    "info/MB/min_bandwidth": "10",
    "info/MB/num_closids": "8",
    "info/MB/thread_throttle_mode": "max",
    "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
    "info/L3_MON/num_rmids": "176",
    "info/L3_MON/max_threshold_occupancy": "65536",
    "info/last_cmd_status": "ok",
    "mon_data/mon_L3_00/llc_occupancy": "0",
    "mon_data/mon_L3_02/llc_occupancy": "0",
}
_EPYC_IDS = [*range(8), *range(16, 24)]
EPYC = {  # one cache for each core complex, with gaps in their ids (as koordinator's issue 1777 shows them)
    "schemata": "    MB:"
    + ";".join(f"{n}=2048" for n in _EPYC_IDS)
    + "\n    L3:"
    + ";".join(f"{n}=ffff" for n in _EPYC_IDS)
    + "\n",
    "size": "    MB:0=2048\n    L3:" + ";".join(f"{n}=33554432" for n in _EPYC_IDS) + "\n",
    "info/L3/cbm_mask": "ffff",
    "info/L3/min_cbm_bits": "0",
    "info/L3/num_closids": "16",
    "info/L3/shareable_bits": "0",
    "info/L3/sparse_masks": "1",
    "info/MB/bandwidth_gran": "1",
    "info/MB/delay_linear": "0",
    "info/MB/min_bandwidth": "0",
    "info/MB/num_closids": "16",
    "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_total_bytes_config\nmbm_local_bytes",
    "info/L3_MON/num_rmids": "256",
    "info/last_cmd_status": "ok",
}
SNC = {  # two sub-NUMA clusters in each of two caches, which `size` leaves out (rdtgroup_cbm_to_size of Linux 6.12)
    "schemata": "    MB:0=100;1=100\n    L3:0=fff;1=fff\n",
    "size": "    L3:0=18874368;1=18874368\n",
    "info/L3/cbm_mask": "fff",
    "info/L3/min_cbm_bits": "1",
    "info/L3/num_closids": "16",
    "info/MB/min_bandwidth": "10",
    "info/MB/bandwidth_gran": "10",
    "info/MB/delay_linear": "1",
    "info/MB/num_closids": "16",
    "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
    "info/L3_MON/num_rmids": "144",
    "mon_data/mon_L3_00/llc_occupancy": "5",
    "mon_data/mon_L3_00/mon_sub_L3_00/llc_occupancy": "2",
    "mon_data/mon_L3_00/mon_sub_L3_01/llc_occupancy": "3",
    "mon_data/mon_L3_01/llc_occupancy": "5",
    "mon_data/mon_L3_01/mon_sub_L3_02/llc_occupancy": "2",
    "mon_data/mon_L3_01/mon_sub_L3_03/llc_occupancy": "3",
}
MPAM = {  # Arm: no thread_throttle_mode, fine bandwidth steps, an L2 besides, occupancy only
    "schemata": "MB:1=100\nL3:1=ffff\nL2:8=ff;9=ff\n",
    "size": "MB:1=100\nL3:1=33554432\nL2:8=1048576;9=1048576\n",
    "info/L2/cbm_mask": "ff",
    "info/L2/num_closids": "32",
    "info/L3/cbm_mask": "ffff",
    "info/L3/min_cbm_bits": "1",
    "info/L3/num_closids": "64",
    "info/L3/shareable_bits": "ffff",
    "info/L3/sparse_masks": "1",
    "info/MB/min_bandwidth": "1",
    "info/MB/bandwidth_gran": "1",
    "info/MB/delay_linear": "1",
    "info/MB/num_closids": "64",
    "info/L3_MON/mon_features": "llc_occupancy",
    "info/L3_MON/num_rmids": "256",
}
CDP = {
    "schemata": "    MB:0=100\nL3DATA:0=fff\nL3CODE:0=fff\n",
    "size": "    MB:0=100\nL3DATA:0=18874368\nL3CODE:0=18874368\n",
    **{f"info/{name}/cbm_mask": "fff" for name in ("L3CODE", "L3DATA")},
    **{f"info/{name}/min_cbm_bits": "1" for name in ("L3CODE", "L3DATA")},
    **{f"info/{name}/num_closids": "8" for name in ("L3CODE", "L3DATA")},
    **{f"info/{name}/shareable_bits": "c00" for name in ("L3CODE", "L3DATA")},
    "info/MB/num_closids": "8",
    "info/MB/min_bandwidth": "10",
    "info/MB/bandwidth_gran": "10",
    "info/MB/delay_linear": "1",
}
MONITORING_ONLY = {
    "schemata": "",
    "size": "",
    "info/L3_MON/mon_features": "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes",
    "info/L3_MON/num_rmids": "32",
    "mon_data/mon_L3_00/llc_occupancy": "0",
    "mon_data/mon_L3_100/llc_occupancy": "0",
}
OLD = {  # Linux 4.10 on a Haswell server: neither shareable_bits nor sparse_masks nor size
    "schemata": "L3:0=fffff;1=fffff\n",
    "info/L3/cbm_mask": "fffff",
    "info/L3/min_cbm_bits": "2",
    "info/L3/num_closids": "4",
}


def record(root: Path, files: dict[str, str], options: str = "rw", point: str = "/sys/fs/resctrl") -> Path:
    """Write a machine on which this resctrl is mounted."""
    here = root / point.lstrip("/")
    for name, text in files.items():
        file = here / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text if text.endswith("\n") or not text else text + "\n")
    mounts = root / "proc/self/mountinfo"
    mounts.parent.mkdir(parents=True, exist_ok=True)
    mounts.write_text(f"30 23 0:26 / {point} rw,relatime shared:9 - resctrl resctrl {options}\n")
    return here


NOT_CAPTURED = ("tasks", "last_cmd_status")  # numbers and words of other people's programs


def files_of(tree, folder: str = "") -> dict[str, str]:
    """Every file of a resctrl with its text, but for those that no capture has and those that refuse to be read."""
    found: dict[str, str] = {}
    for name in tree.names(folder):
        path = f"{folder}/{name}".lstrip("/")
        try:
            found |= files_of(tree, path)
        except NotADirectoryError:
            if name not in NOT_CAPTURED:
                with suppress(OSError):
                    found[path] = tree.read(path)
    return found
