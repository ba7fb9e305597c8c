"""The data contract of partitions: what shares of the cache do, and which one is recommended."""

from functools import partial

from castmates.results.columns.contract import Table, col, ends, interval, usual
from castmates.study import capabilities

_partitions_table = partial(Table, rule="analyse", asked=capabilities.PARTITIONS)

SENSITIVITY = _partitions_table(
    "sensitivity",
    "tables/sensitivity.csv: how fast each lead is with so many ways, alone and beside each antagonist; a row per"
    " partition that gives the lead separate ways.",
    *usual("study mix lead"),
    col("antagonists", str, '"" where the lead is alone'),
    *usual("member curve partition"),
    col("lead_ways", int, "ways that the lead may fill; NA where no mask was set"),
    col("lead_bytes", float, "what they hold in one cache; NaN where the machine does not report it"),
    col("shared_ways", int | None, "of these, ways that I/O fills too; NA where that is not known"),
    *interval("rate_pct", "of its rate alone with all ways", "95 % between launches; NaN below three launches"),
    *ends("within", "95 % within launch"),
    *usual("launches rounds platform"),
    col("held", str, "what the processor held: as asked, otherwise, beyond, uncertain, not read, shared"),
    *usual("machine"),
    estimate="partitions.sensitivity:sensitivity_table",
)

KNEES = _partitions_table(
    "knees",
    "tables/knees.csv: the smallest number of ways from which on a lead keeps 95 % of its rate alone; a row per curve.",
    *usual("study mix lead antagonists member curve"),
    col("kept_pct", float, "what counts as kept"),
    col("knee", int | None, "NA where no measured number of ways keeps it"),
    *ends(
        "knee",
        "95 %; NA where every measured number is shown to be too small",
        high="NA where no measured number is shown to be enough",
        kind=int | None,
    ),
    col("fewest_ways", int, "that were measured"),
    col("most_ways", int, "that were measured"),
    col("points", int, "with an interval between launches"),
    col("launches", int, "of the point that has fewest"),
    col("verdict", str, "known, between, at least, not reached, too few launches"),
    *usual("platform machine"),
    estimate="partitions.sensitivity:knees",
)

PARETO = _partitions_table(
    "pareto",
    "tables/pareto.csv: what a lead loses and what its antagonists keep under every partition of a mix.",
    *usual("study mix lead antagonists partition curve lead_ways lead_bytes"),
    col("stage", str, "search; confirmed: fresh launches of another study, which measure this partition alone"),
    col("source", str, "the study that the launches are of"),
    *interval("loss_pct"),
    *interval("kept_pct"),
    *interval("stp"),
    col("frontier", bool, "no other partition of the same stage loses less and keeps more, as estimated"),
    *usual("launches"),
    col("refused", int, "launches of a confirming study that do not count"),
    col("why_refused", str, "in a sentence"),
    col("design", str, "of a confirming study: how its counted launches were measured otherwise than the search's"),
    *usual("platform held machine"),
    col("freedom", float, "degrees of freedom of the interval of the loss; NaN where there is none"),
    estimate="partitions.recommendation:pareto_with_confirmed",
)

RECOMMENDATIONS = _partitions_table(
    "recommendations",
    "tables/recommendations.csv: the lead mask that is advised, the smallest that keeps the wanted limit or, "
    "without a limit, the knee; a row per mix of several members.",
    *usual("study mix lead antagonists"),
    col("limit_pct", float, "the wanted one; without one the loss that a knee allows"),
    col("verdict", str, "met, knee; without advice: not needed, loss not proven, not met, too few launches, no sweep"),
    col("partition", str, 'where the limit is not met the one that comes nearest; "" where none is needed'),
    *usual("lead_ways lead_bytes cache_ways"),
    *interval("loss_pct"),
    col("bound_pct", float, "upper bound of the loss, adjusted for the kinds of partition that were looked at"),
    col("confidence", float, "of that bound, one-sided"),
    col("masks", int, "that were looked at"),
    col("kinds", int, "of partition among them"),
    col("larger_beyond", int, "where the limit is not met: larger masks of the same kind that miss it too"),
    *usual("launches"),
    *interval("kept_pct"),
    *interval("stp"),
    col(
        "confirmation",
        str,
        'confirmed, exceeded, unclear, too few launches, not confirmed yet; "" where nothing is met',
    ),
    col("confirmed_in", str, "the confirming study"),
    *interval("confirmed_loss_pct", "the same in the confirming study"),
    *interval("confirmed_kept_pct", "the same in the confirming study"),
    *interval("confirmed_stp", "the same in the confirming study"),
    col("confirmed_launches", int, "launches of the confirming study"),
    col("confirmed_studies", int, "of this mix and partition; the one with most launches is shown"),
    col("confirmed_design", str, "how it measured otherwise than the search"),
    *usual("platform held machine"),
    col("aim", str, "limit, knee"),
    *interval("without_pct", "the loss without a partition"),
    *interval("faster", "how many times as fast the lead is as without a partition"),
    estimate="partitions.recommendation:advice",
)

CURVES = Table(
    "curves",
    "tables/curves.csv: what a lead loses over the amount of one thing that partitions give out, where looks "
    "decided how much of that was measured (`budget.adaptive`); a row per cell, no rows of other studies.",
    *usual("study mix lead"),
    col("antagonists", str, '"" where the lead is alone'),
    *usual("member"),
    col("curve", str, "the kind of partition: its name without the lead's ways, or what the others get so much of"),
    col("unit", str, "of the amount: ways, ways of the others, quota (in per cent), bandwidth of the others"),
    *usual("partition"),
    col("amount", float, "that the partition gives, in this unit"),
    *interval(
        "loss_pct", "", "measured: 95 % between launches; interpolated: the bound that its measured neighbours give"
    ),
    col("launches", int, "launches that measured it; 0 where none did"),
    *usual("platform machine"),
    col("source", str, "measured, interpolated, or unknown: beyond what was measured"),
    rule="analyse",
    estimate="partitions.sensitivity:curves_table",
    asked=capabilities.ADAPTIVE,
)
