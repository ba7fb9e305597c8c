"""The registers that a capture has: what shares caches and bandwidth out, and what sets clocks and prefetchers.

None of them names a processor: those with its serial number (0x4e, 0x4f on Intel, 0xc00102f0 and 0xc00102f1 on AMD) are
not in the list, and nothing else is read.
"""

from contextlib import suppress

from castmates.linux.msr import read_msr
from castmates.machine.topology import Topology

# By vendor: names and addresses as in Linux (arch/x86/include/asm/msr-index.h).
OF_INTEL = (
    0xC81,  # L3_QOS_CFG: whether code and data are kept apart
    0xC82,  # L2_QOS_CFG
    *range(0xC90, 0xCA0),  # L3_MASK_n
    *range(0xD10, 0xD20),  # L2_MASK_n
    *range(0xD50, 0xD60),  # MBA throttle n
    0xCA0,  # RMID_SNC_CONFIG: how monitoring ids are divided among sub-NUMA clusters
    0xCE,  # PLATFORM_INFO: the nominal clock
    0xE2,  # PKG_CST_CONFIG_CONTROL: C-states of the package
    0x1A0,  # MISC_ENABLE
    0x1A4,  # MISC_FEATURE_CONTROL: prefetchers
    0x1AD,  # TURBO_RATIO_LIMIT
    0x1B0,  # ENERGY_PERF_BIAS
    0x1FC,  # POWER_CTL
    0x606,  # RAPL_POWER_UNIT
    0x610,  # PKG_POWER_LIMIT
    0x620,  # UNCORE_RATIO_LIMIT
    0x774,  # HWP_REQUEST
)
OF_AMD = (
    0xC81,  # L3_QOS_CFG
    *range(0xC90, 0xCA0),  # L3_MASK_n
    *range(0xC0000200, 0xC0000210),  # L3QOS_BW_CONTROL_n
    *range(0xC0000280, 0xC0000290),  # L3QOS_SLOWBW_CONTROL_n
    0xC00003FF,  # L3_QOS_EXT_CFG: assignable counters, and what I/O may fill
    0xC0010015,  # HWCR: whether boost is off
    0xC0000108,  # PREFETCH_CONTROL
    *range(0xC0010061, 0xC0010065),  # P-state limit, control, status and the first P-state
    0xC0010299,  # RAPL_PWR_UNIT
)
READ = {"GenuineIntel": OF_INTEL, "AuthenticAMD": OF_AMD}


def registers(vendor: str | None, topology: Topology) -> dict[str, str]:
    """Read them on one CPU of each last-level cache; nothing where they may not be read."""
    cpus = [next((cpu for cpu in llc.cpus if cpu in topology.allowed), None) for llc in topology.llcs]
    found = {}
    for cpu in (cpu for cpu in cpus if cpu is not None):
        for address in READ.get(vendor or "", ()):
            with suppress(OSError):  # this user may not look, or this processor has no such register
                found[f"castmates/msr/cpu{cpu}/{address:#x}"] = f"{read_msr(cpu, address):#018x}\n"
    return found
