"""Events in the words of PAPI and of Intel's manuals: what they are in perf's, and what is counted of them here."""

from pathlib import Path

import pytest

from castmates.counters.events.resolving import names_in, resolve
from castmates.study.counter_keys import CounterKeys, described
from castmates.study.event_spelling import PRESETS, as_perf_spells, names_of
from tests.unit.counters.processors import processor

PAPI = (Path(__file__).parents[2] / "data" / "papi" / "presets.txt").read_text()
# What PAPI calls by its own or the kernel's names -> perf's of the same event.
KERNELS = {
    "CPU_CLK_THREAD_UNHALTED:THREAD_P": "cycles", "CPU_CLK_UNHALTED:THREAD_P": "cycles",
    "CYCLES_NOT_IN_HALT": "cycles", "INST_RETIRED:ANY_P": "instructions", "RETIRED_INSTRUCTIONS": "instructions",
    "UNHALTED_REFERENCE_CYCLES": "ref-cycles", "BR_INST_RETIRED:ALL_BRANCHES": "branches",
    "RETIRED_BRANCH_INSTRUCTIONS": "branches", "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED": "branch-misses",
    "RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS": "ex_ret_cond",
    "CORE_TO_L2_CACHEABLE_REQUEST_ACCESS_STATUS:IC_FILL_MISS": "l2_cache_req_stat.ic_fill_miss",
    "ix86arch::LLC_REFERENCES": "longest_lat_cache.reference", "ix86arch::LLC_MISSES": "longest_lat_cache.miss",
    "MEM_UOPS_RETIRED:ALL_LOADS": "mem_inst_retired.all_loads",  # of Skylake: the same code under an older name
    "MEM_UOPS_RETIRED:ALL_STORES": "mem_inst_retired.all_stores",
    "MEM_LOAD_UOPS_RETIRED:L3_MISS": "mem_load_retired.l3_miss",
}  # fmt: skip

# PAPI adds up several umasks of AMD's, for which perf has no name: not supported there.
LACKS_ON_AMD = ("PAPI_L1_DCM", "PAPI_L2_DCR", "PAPI_L2_ICM")  # Zen 4 derives the last one, from names of Zen 3


@pytest.mark.parametrize("processor_", ["skx", "icx", "spr", "zen3", "zen4"])
def test_a_preset_is_what_papis_own_table_has_on_each_processor(processor_):
    known = [line.split() for line in PAPI.splitlines() if line.startswith(f"{processor_} ")]
    seen = 0
    for _, preset, native in known:
        if preset in PRESETS and native != "derived":
            perf = KERNELS.get(native) or native.replace(":", ".").lower()
            if not (processor_.startswith("zen") and preset in LACKS_ON_AMD):
                assert perf in names_of(PRESETS[preset]), (preset, native)
                seen += 1
    assert seen >= 4


@pytest.mark.parametrize(
    ("written", "perf"),
    [
        ("MEM_LOAD_RETIRED.L3_MISS", "mem_load_retired.l3_miss"),
        ("OCR.DEMAND_DATA_RD.L3_MISS", "ocr.demand_data_rd.l3_miss"),
        ("INST_RETIRED.ANY:u", "inst_retired.any:u"),
        ("skx::IDQ_UOPS_NOT_DELIVERED:CORE", "idq_uops_not_delivered.core"),
        ("PAPI_L3_TCM", "longest_lat_cache.miss"),
        ("PAPI_TOT_INS:u", "instructions:u"),
        ("RETIRED_INSTRUCTIONS", "instructions"),
        ("amd64_fam19h_zen3::CYCLES_NOT_IN_HALT:u", "cycles:u"),
        ("ix86arch::LLC_MISSES", "longest_lat_cache.miss"),
        ("perf::CYCLES", "cycles"),
        ("perf::CACHE-MISSES:k", "cache-misses:k"),
        ("PAPI_BR_CN:k", "br_inst_retired.conditional:k|br_inst_retired.cond:k|ex_ret_cond:k"),
        *((name, name) for name in ("LLC-loads", "L1-dcache-load-misses", "dTLB-loads", "cycles:u", "r01C2")),
        *((name, name) for name in ("cpu/event=0xd1,umask=0x20,name=L3/", "sched:sched_switch", "mem:0x1000")),
    ],
)
def test_the_words_of_papi_and_manuals_become_perfs_and_others_stay(written, perf):
    assert as_perf_spells(written) == perf
    assert as_perf_spells(perf) == perf
    keys = CounterKeys(events=["mine"], sets={"mine": [written]})
    assert keys.sets["mine"] == [perf]
    assert CounterKeys.model_validate(keys.model_dump()) == keys  # a published study is read again


def test_what_papi_derives_is_refused_by_name():
    with pytest.raises(ValueError, match="the processor's own events instead of PAPI_L1_TCM"):
        CounterKeys(sets={"mine": ["PAPI_L1_TCM"]})


def counted(name, *events):
    """Name, and why not, of each event in a set of the user's on a recorded processor."""
    here = processor(name)
    keys = CounterKeys(events=["mine"], sets={"mine": list(events)})
    return {event.name: bool(event.attrs) for event in resolve(keys.chosen, here.ask, lambda: names_in(here.listed()))}


def test_on_a_processor_the_name_that_its_perf_lists_is_counted_and_another_makers_is_a_row_with_a_reason():
    assert counted("skylake-sp", "MEM_LOAD_RETIRED.L3_MISS", "PAPI_BR_MSP") == {
        "mem_load_retired.l3_miss": True,
        "branch-misses": True,  # the recorded list has no family of branches
    }
    assert counted("zen3", "PAPI_TOT_CYC", "PAPI_BR_MSP", "PAPI_L3_LDM", "PAPI_BR_NTK") == {
        "cycles": True,
        "branch-misses": True,
        "mem_load_retired.l3_miss": False,
        "br_inst_retired.cond_ntaken": False,
    }


@pytest.mark.parametrize("name", ["zen3", "zen4"])
def test_what_papi_derives_on_a_processor_is_a_row_with_a_reason_there(name):
    rows = (line.split() for line in PAPI.splitlines() if line.startswith(f"{name} "))
    several = {preset for _, preset, native in rows if native == "derived" or native.count(":") > 1}  # or umasks
    derived = sorted(several & PRESETS.keys())
    assert len(derived) > 3
    assert not any(counted(name, *derived).values())
    zens = {KERNELS[line.split()[2]] for line in PAPI.splitlines() if line[:3] == "zen" and line.split()[2] in KERNELS}
    assert not {preset for preset in derived if zens & {*names_of(PRESETS[preset])}}  # the recorded lists are parts


def test_a_choice_is_told_in_words():
    assert "branches, a or b)" in described(CounterKeys(events=["mine"], sets={"mine": ["PAPI_BR_INS", "a|b"]}))
