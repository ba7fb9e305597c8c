"""The data contract: the columns of every table that a study leaves, in order, with their types.

Other people's scripts read these tables: add columns at the end, never rename or reorder.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from castmates.results.columns.block import WINDOWS, Columns
from castmates.results.columns.mixes import SYSTEM_OVER_MIXES
from castmates.results.columns.nodes import NODES
from castmates.results.columns.prediction import PREDICTIONS, PROFILES
from castmates.results.columns.services import SERVICES
from castmates.results.columns.variants import VARIANT_EFFECTS

if TYPE_CHECKING:
    import pandas as pd

# tables/effects.csv and .parquet: a row per mix × partition × baseline × member.
EFFECTS: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",  # joined by "+"
    "member": "str",
    "role": "str",
    "partition": "str",
    "lead_ways": "Int64",  # NA where no mask was set
    "baseline": "str",  # for the lead solo, placebo; under a partition also placebo@mask, unmanaged; else alone
    "metric": "str",  # rate; p99 of latency, of an open-loop service, whose slowdown is its ratio
    "slowdown": "float64",  # rate(baseline) / rate(scene), geometric mean over blocks
    "slowdown_low": "float64",  # 95 % between launches; NaN below three blocks
    "slowdown_high": "float64",
    "degradation_pct": "float64",  # 100 × (1 - 1/slowdown)
    "degradation_low": "float64",
    "degradation_high": "float64",
    "blocks": "int64",
    "rounds": "int64",  # complete pairs, over all blocks
    "windows_valid": "int64",  # of the scene
    "windows_rejected": "int64",
    "platform": "str",
    # Added after the promised columns.
    "within_low": "float64",  # 95 % within launch, of the slowdown: rounds as units; covers these launches only
    "within_high": "float64",
    "p_value": "float64",  # two-sided t over blocks; NaN below three blocks
    "p_holm": "float64",  # adjusted over the study's rows of this baseline, those under partitions by themselves
    "verdict": "str",  # loss, gain, no loss, can't tell yet, too few launches, no data
    "baseline_windows_valid": "int64",
    "baseline_windows_rejected": "int64",
    "rejection_rate": "float64",  # share of the scene's slices; NaN where there was none
    "baseline_rejection_rate": "float64",
    "possibly_biased": "bool",  # the scene was rejected more often than its baseline
    "across_stretches": "bool",  # scene and baseline do not alternate, because masks change between them
    "growth_pct": "float64",  # by how much the slowdown of the later halves of slices is above that of the earlier ones
    "growth_low": "float64",  # 95 % between launches; NaN below three blocks
    "growth_high": "float64",
    "still_growing": "bool",  # it is above zero for certain, and large enough to matter
    "held": "str",  # what the processor held: as asked, otherwise, uncertain, not read, shared with …; "" without one
    "antagonists_gb_s": "float64",  # 1e9 bytes a second that antagonists read and wrote by their own count
    "antagonists_peak_pct": "float64",  # the same in per cent of the peak measured of one package; NaN: not known
    "machine": "str",  # the class of nodes; "" in a study without classes
    "nodes": "int64",  # hosts on which it was measured
    "nodes_p_holm": "float64",  # that the nodes do not differ, adjusted as p_holm is; NaN on one node
    "over": "str",  # whose means the interval is of: launches; launches of these nodes (two nodes); nodes
    "freedom": "float64",  # degrees of freedom of the interval; NaN where there is none
}

# tables/attribution.csv: a row per mix and part of its lead's loss against solo; docs/methodology.md has the chain.
ATTRIBUTION: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",  # joined by "+"
    "member": "str",
    "part": "str",  # total, busy neighbour, not given back, own smaller share, despite own ways, cache capacity …
    "part_of": "str",  # whose part it is: parts of the same one add up to it; "" for the total
    "start": "str",  # solo, placebo, placebo@mask, isolated; the part is log rate(start) - log rate(end)
    "end": "str",  # …, unmanaged
    "log": "float64",
    "log_low": "float64",  # 95 % between launches; NaN below three blocks
    "log_high": "float64",
    "degradation_pct": "float64",  # the same in per cent of the rate at `start`
    "degradation_low": "float64",
    "degradation_high": "float64",
    "points": "float64",  # percentage points of the solo rate; they add up too
    "points_low": "float64",
    "points_high": "float64",
    "blocks": "int64",  # that estimate
    "rounds": "int64",  # in which every stage was measured, over these blocks
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over the study's rows of this part
    "verdict": "str",  # loss, gain, no loss, can't tell yet, too few launches, no data
    "within_low": "float64",  # 95 % within launch, in log terms
    "within_high": "float64",
    "partition": "str",  # under which lead and antagonists are isolated; "" where there is none
    "lead_ways": "Int64",
    "cache_ways": "Int64",
    "how": "str",  # named, the only one, chosen
    "candidates": "int64",  # partitions that isolate, of which it is one
    "blocks_choosing": "int64",  # that chose it, and do not estimate
    "note": "str",  # what could not be separated, and why
    "platform": "str",
    "points_within_low": "float64",  # 95 % within launch, of the points
    "points_within_high": "float64",
    "possibly_biased": "bool",  # a co-run at either end was rejected more often than a baseline, as in effects
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/controls.csv: what is known beforehand. A/A: an independent second solo of each lead against its first.
CONTROLS: Columns = {
    "study": "str",
    "lead": "str",
    "control": "str",  # A/A, positive, negative
    "ratio": "float64",  # rate(baseline) / rate(scene); of A/A: rate(solo) / rate(solo-again)
    "ratio_low": "float64",
    "ratio_high": "float64",
    "within_low": "float64",
    "within_high": "float64",
    "blocks": "int64",
    "rounds": "int64",
    "p_value": "float64",  # two-sided; of the positive control one-sided ("it loses more than the margin")
    "p_holm": "float64",  # adjusted over all A/A and negative controls; the positive one is a separate family
    "verdict": "str",  # passes, unstable, inconclusive; sensitive, no sensitivity shown here; too few launches, no data
    "platform": "str",
    # Added later.
    "mix": "str",  # of the positive and the negative control
    "baseline": "str",  # solo; of the positive and the negative control placebo
    "study_lead": "bool",  # False where the lead plays only in the controls
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/carryover.csv: whether the scene before a window affects its rate; a row per member.
CARRYOVER: Columns = {
    "study": "str",
    "member": "str",
    "workload": "str",
    "role": "str",
    "change_pct": "float64",  # of the rate where it was frozen in the slice before, against where it ran
    "change_low": "float64",  # 95 %, launches as units; NaN below three blocks
    "change_high": "float64",
    "detectable_pct": "float64",  # a change that would have been found in four studies of five
    "blocks": "int64",  # with enough windows
    "windows": "int64",  # slices in stretches in which some scene freezes it
    "windows_after_frozen": "int64",
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over the members of the same role
    "verdict": "str",  # none seen, seen, too few windows; never frozen
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/blocks.csv: a row per block, also of failed ones.
BLOCKS: Columns = {
    "study": "str",
    "company": "str",
    "block": "int64",
    "lead": "str",
    "status": "str",  # measured, failed
    "reason": "str",  # why it failed
    "started": "str",  # ISO 8601, UTC
    "launch_seconds": "float64",
    "total_seconds": "float64",
    "rounds": "int64",  # rounds without a rejected window
    "windows": "int64",
    "windows_rejected": "int64",
    "platform": "str",
    # Added later.
    "host": "str",  # the node that it was measured on
    "processor": "str",  # its model; "" where nothing was measured
    "boot_id": "str",  # of the node: blocks between two starts of it share one
    "left_out": "bool",  # kept, and not analysed, because the study leaves out its host
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/margins.csv: the margins of the matrix lead × antagonist without a partition, where all of its cells are there.
MARGINS: Columns = {
    "study": "str",
    "margin": "str",  # sensitivity of a lead, contentiousness of an antagonist
    "who": "str",
    "baseline": "str",  # solo, placebo
    "slowdown": "float64",  # geometric mean over the cells; NaN where one is missing
    "slowdown_low": "float64",  # 95 % between launches; NaN where a company has fewer than three
    "slowdown_high": "float64",
    "degradation_pct": "float64",  # 100 × (1 - 1/slowdown)
    "degradation_low": "float64",
    "degradation_high": "float64",
    "cells": "int64",  # that were measured
    "cells_of": "int64",  # that a whole row or column has
    "blocks": "int64",  # launches in which all the cells of their company were measured
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/stamps.csv: what is stamped on the whole study, a row per stamp.
STAMPS: Columns = {
    "study": "str",
    "stamp": "str",  # origin (not all was measured), control, sensitivity, masks (some were set), machines, nodes
    "word": "str",
    "good": "bool",  # never where not all was measured
    "sentence": "str",
    "platform": "str",  # of the numbers that it is about; several are separated by ", "
}

# tables/system.csv: the combined throughput of a mix; a row per mix × partition × metric. The lead's slowdown is
# against solo, an antagonist's against being alone.
SYSTEM: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "partition": "str",
    "lead_ways": "Int64",  # NA where no mask was set
    "members": "int64",
    "metric": "str",  # STP, ANTT, harmonic speedup, unfairness, max slowdown, Jain
    "value": "float64",  # geometric mean over blocks of the metric of each block
    "low": "float64",  # 95 % between launches; NaN below three blocks
    "high": "float64",
    "blocks": "int64",  # in which every member has a pair
    "blocks_incomplete": "int64",  # measured ones in which some member has none
    "platform": "str",
    # Added later.
    "possibly_biased": "bool",  # of a member, the co-run was rejected more often than its baseline, as in effects
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/latency.csv: how long a member's steps take; a row per member, scene and quantile. A step lies between two
# heartbeats in one valid window. Quantiles are per block; where it has too few steps, none.
LATENCY: Columns = {
    "study": "str",
    "member": "str",
    "workload": "str",
    "role": "str",
    "kind": "str",  # solo, placebo, corun, alone
    "scene": "str",  # solo, placebo:1, corun:<mix>, alone:<member>; with @<partition> under one
    "mix": "str",  # "" where the scene serves several mixes
    "partition": "str",
    "unit": "str",
    "units": "float64",  # that a step covers
    "quantile": "str",  # p50, p95, p99
    "ms": "float64",  # geometric mean over blocks of each block's quantile; NaN where missing
    "ms_low": "float64",  # 95 % between launches; NaN below three blocks
    "ms_high": "float64",
    "baseline": "str",  # solo for a lead, alone for an antagonist; "" for a baseline itself
    "ratio": "float64",  # over the baseline's, paired by block
    "ratio_low": "float64",  # 95 % between launches
    "ratio_high": "float64",
    "blocks": "int64",  # with enough steps
    "blocks_few": "int64",  # with too few, which are left out
    "blocks_paired": "int64",  # in which the baseline has enough too
    "steps": "int64",  # in the blocks with enough
    "steps_needed": "int64",  # of a block
    "refused": "str",  # why there is no number; "" where there is one
    "platform": "str",
    # Added later.
    "possibly_biased": "bool",  # the scene was rejected more often than its baseline, as in effects
    "machine": "str",  # the class of nodes; "" in a study without classes
    "what": "str",  # step, request: a request to an open-loop service counts from when it was due
}

# tables/resources.csv: what a member used in a co-run against its baseline, where that was measured; a row per mix ×
# partition × member × metric. Each value is over the rounds in which both windows have one. What belongs to a package
# (energy, memory controllers, uncore clock) has no member, and role `package`: other programs are included.
RESOURCES: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",
    "partition": "str",
    "lead_ways": "Int64",
    "member": "str",
    "role": "str",
    "metric": "str",  # cache occupancy, memory bandwidth, instructions per cycle, LLC-load-misses …, Backend_Bound …
    "unit": "str",  # bytes, bytes per second, per cent of slots, GHz, W, per second; "" for a ratio of two counts
    "baseline": "str",  # solo, alone; of clocks and packages also placebo
    "value": "float64",  # geometric mean over blocks; of shares the arithmetic one
    "value_low": "float64",  # 95 % between launches; NaN below three blocks, here and below
    "value_high": "float64",
    "baseline_value": "float64",
    "baseline_low": "float64",
    "baseline_high": "float64",
    "scale": "str",  # of the change: ratio, points
    "change": "float64",  # value over the baseline's; of shares their difference
    "change_low": "float64",
    "change_high": "float64",
    "blocks": "int64",
    "rounds": "int64",
    "platform": "str",
    # Added later.
    "scope": "str",  # member; what has none: package 0 …, packages (all of the block's together)
    "scene": "str",  # whose value it is: corun; placebo (a busy neighbour's stand-in); solo under a partition
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/mitigations.csv: what is tried against the loss of a mix, beside nothing done; a row per mix × mitigation.
MITIGATIONS: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",  # joined by "+", with their distance after ":" where the mix has one
    "mitigation": "str",  # unmanaged (nothing is done), ways, bandwidth, code, core, socket, other-socket, quota
    "partition": "str",  # under which it was measured; "" for none
    "how": "str",  # the partition is the only one, or was chosen
    "candidates": "int64",  # partitions of which it is one
    "blocks_choosing": "int64",  # that chose it, and do not estimate
    "loss_pct": "float64",  # of the lead against solo: 100 × (1 - 1/slowdown)
    "loss_low": "float64",  # 95 % between launches; NaN below three blocks, here and below
    "loss_high": "float64",
    "gain_pct": "float64",  # by how much the lead's rate is above that with nothing done
    "gain_low": "float64",
    "gain_high": "float64",
    "others_loss_pct": "float64",  # of the antagonists against being alone: geometric mean over them
    "others_loss_low": "float64",
    "others_loss_high": "float64",
    "cost_pct": "float64",  # by how much the antagonists' rate is below that with nothing done
    "cost_low": "float64",
    "cost_high": "float64",
    "blocks": "int64",  # that estimate
    "rounds": "int64",
    "p_value": "float64",  # of the gain
    "p_holm": "float64",  # adjusted over the mitigations of the mix
    "verdict": "str",  # of the gain: gain (it gives back), loss, no loss, can't tell yet, too few launches, no data
    "reason": "str",  # why it was not tried, or has no number
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# tables/distances.csv: the loss of a lead by number and nearness of its antagonists; a row per lead × antagonists ×
# distance × count, where a study varies one of them.
DISTANCES: Columns = {
    "study": "str",
    "mix": "str",
    "lead": "str",
    "antagonists": "str",  # those that are there `count` times, joined by "+"
    "distance": "str",  # cpu (the lead's own), smt, core, llc, socket, other-socket; "" where placement chose
    "count": "int64",  # antagonists
    "slowdown": "float64",  # against solo, as in effects
    "slowdown_low": "float64",  # 95 % between launches; NaN below three blocks
    "slowdown_high": "float64",
    "degradation_pct": "float64",  # loss of the lead's rate, as in effects
    "degradation_low": "float64",
    "degradation_high": "float64",
    "blocks": "int64",
    "rounds": "int64",
    "verdict": "str",  # as in effects
    "nearer": "str",  # the next nearer distance with as many antagonists; "" for none
    "gain_pct": "float64",  # by how much the lead's rate is above that at the nearer one, inside rounds
    "gain_low": "float64",  # 95 % between launches
    "gain_high": "float64",
    "gain_blocks": "int64",  # in which both distances were measured
    "platform": "str",
    "reason": "str",  # why it was not measured: what it needs of the machine, and what there is
    "machine": "str",  # the class of nodes; "" in a study without classes
}

# What estimate_effects leaves.
STUDY_TABLES: Mapping[str, Columns] = {
    "effects": EFFECTS,
    "attribution": ATTRIBUTION,
    "controls": CONTROLS,
    "carryover": CARRYOVER,
    "margins": MARGINS,
    "system": SYSTEM,
    "system_over_mixes": SYSTEM_OVER_MIXES,
    "latency": LATENCY,
    "resources": RESOURCES,
    "mitigations": MITIGATIONS,
    "distances": DISTANCES,
    "nodes": NODES,
    "blocks": BLOCKS,
    "stamps": STAMPS,
    "windows": WINDOWS,
    "services": SERVICES,
    "predictions": PREDICTIONS,
    "profiles": PROFILES,
    "variant_effects": VARIANT_EFFECTS,
}


def frame(rows: Sequence[Mapping[str, Any]], columns: Columns) -> "pd.DataFrame":
    """A table with exactly these columns and types, also when there are no rows."""
    import pandas as pd

    table = pd.DataFrame(list(rows), columns=list(columns))
    # Whole numbers beside None have become floats there, which do not distinguish neighbours above 2**53.
    rounded = [name for name, kind in columns.items() if kind == "Int64" and table[name].dtype == "float64"]
    for name in rounded:
        table[name] = pd.Series([row.get(name) for row in rows], dtype="object").astype("Int64")
    return table.astype(dict(columns))
