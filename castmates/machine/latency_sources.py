"""Which source of memory latencies a processor has, by what perf lists in sysfs: PEBS (Intel), IBS (AMD), SPE (Arm)."""

from pathlib import Path

from castmates.linux.perf_event import PERF_DEVICES

LATENCY = 30  # cycles; Intel's and Arm's sources take loads that are at least so slow, as `perf mem` does
PEBS, IBS, SPE = "PEBS", "IBS", "SPE"


def latency_source(root: Path) -> dict[str, str] | None:
    """The source, and the events that perf records it by; None where there is none."""
    devices = root / PERF_DEVICES
    for unit in ("cpu", "cpu_core"):  # of a hybrid processor the fast cores
        events = devices / unit / "events"
        if (events / "mem-loads").exists():
            loads = f"{unit}/mem-loads,ldlat={LATENCY}/"
            # Since Sapphire Rapids and Alder Lake loads are only counted with another event before them.
            before = (events / "mem-loads-aux").exists()
            return {"source": PEBS, "events": f"{{{unit}/mem-loads-aux/,{loads}}}:P" if before else f"{loads}P"}
    if (devices / "ibs_op" / "type").exists():
        return {"source": IBS, "events": "ibs_op//"}
    if spe := sorted(devices.glob("arm_spe_*")):
        filters = f"ts_enable=1,load_filter=1,store_filter=0,min_latency={LATENCY}"
        return {"source": SPE, "events": f"{spe[0].name}/{filters}/"}
    return None
