"""Events as PAPI and the processors' manuals spell them -> as perf does; pure, standard library only."""

import re

BETWEEN = "|"  # between the names that perf has for one thing on several processors; the first that it lists is counted

# PAPI's presets that are one event on Intel's processors since Skylake (its src/papi_events.csv). AMD's names are here
# where no Zen derives the preset from several events; elsewhere it has no event there.
PRESETS = {
    "PAPI_TOT_CYC": "cycles",
    "PAPI_TOT_INS": "instructions",
    "PAPI_REF_CYC": "ref-cycles",
    "PAPI_BR_INS": "branches",
    "PAPI_BR_MSP": "br_misp_retired.conditional|br_misp_retired.cond|branch-misses",  # Intel's: conditional ones alone
    "PAPI_BR_CN": "br_inst_retired.conditional|br_inst_retired.cond|ex_ret_cond",
    "PAPI_BR_NTK": "br_inst_retired.not_taken|br_inst_retired.cond_ntaken",
    "PAPI_L1_DCM": "l1d.replacement",
    "PAPI_L1_ICM": "l2_rqsts.all_code_rd",
    "PAPI_L2_DCR": "l2_rqsts.all_demand_data_rd",
    "PAPI_L2_ICM": "l2_rqsts.code_rd_miss",
    "PAPI_L2_LDM": "l2_rqsts.demand_data_rd_miss",
    "PAPI_L2_TCM": "longest_lat_cache.reference",
    "PAPI_L3_LDM": "mem_load_retired.l3_miss",
    "PAPI_L3_TCA": "longest_lat_cache.reference",
    "PAPI_L3_TCM": "longest_lat_cache.miss",
    "PAPI_LD_INS": "mem_inst_retired.all_loads",
    "PAPI_SR_INS": "mem_inst_retired.all_stores",
    "PAPI_TLB_IM": "itlb_misses.miss_causes_a_walk",
    "PAPI_RES_STL": "resource_stalls.any",
}
# Of a manual, MEM_LOAD_RETIRED.L3_MISS, or of PAPI, skx::MEM_LOAD_RETIRED:L3_MISS; perf's modes may stand behind it.
_CAPITALS = re.compile(r"(?:[a-z]\w*::)?([A-Z][A-Z0-9_]*(?::[A-Z0-9_]+|(?:\.[A-Z0-9_]+)+))((?::[ukh]+)?)")
# Native names without a umask, of AMD's processors and of libpfm's ix86arch.
WITHOUT_UMASK = {
    "CYCLES_NOT_IN_HALT": "cycles",
    "RETIRED_INSTRUCTIONS": "instructions",
    "RETIRED_BRANCH_INSTRUCTIONS": "branches",
    "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED": "branch-misses",
    "RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS": "ex_ret_cond",
    "UNHALTED_CORE_CYCLES": "cycles",
    "UNHALTED_REFERENCE_CYCLES": "ref-cycles",
    "INSTRUCTION_RETIRED": "instructions",
    "BRANCH_INSTRUCTIONS_RETIRED": "branches",
    "MISPREDICTED_BRANCH_RETIRED": "branch-misses",
    "LLC_REFERENCES": "longest_lat_cache.reference",
    "LLC_MISSES": "longest_lat_cache.miss",
}
_OF_THE_KERNEL = {
    *("cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "bus-cycles"),
    *("ref-cycles", "task-clock", "page-faults", "context-switches", "cpu-migrations"),
}
_WITHOUT_UMASK = re.compile(r"(perf::)?(?:[a-z]\w*::)?([A-Z][A-Z0-9_-]*)((?::[ukh]+)?)")
_PRESET = re.compile(r"(PAPI_[A-Z0-9_]+)((?::[ukh]+)?)")


def as_perf_spells(event: str) -> str:
    """The event in perf's words, where it is spelled in PAPI's or in capitals; a ValueError where PAPI has several."""
    if match := _CAPITALS.fullmatch(event):
        return match[1].replace(":", ".").lower() + match[2]
    if match := _PRESET.fullmatch(event):
        if match[1] not in PRESETS:
            raise ValueError(
                f"one of PAPI's presets that are one event ({', '.join(PRESETS)}), or the processor's own events "
                f"instead of {match[1]}"
            )
        return BETWEEN.join(f"{name}{match[2]}" for name in names_of(PRESETS[match[1]]))
    if match := _WITHOUT_UMASK.fullmatch(event):
        kernels = match[2].lower() if match[1] and match[2].lower() in _OF_THE_KERNEL else ""
        if name := kernels or WITHOUT_UMASK.get(match[2]):
            return name + match[3]
    return event


def names_of(words: str) -> tuple[str, ...]:
    """The names of a choice, in their order; of any other event its words."""
    return tuple(words.split(BETWEEN))
