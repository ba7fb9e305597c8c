"""The data contract of variants of leads."""

from castmates.results.columns.contract import Table, col, interval, usual
from castmates.study import capabilities

VARIANT_EFFECTS = Table(
    "variant_effects",
    "tables/variant_effects.csv: whether a lead in other settings loses more or less than the lead as it is; a "
    "row per variant × antagonists × partition × platform. Leads against alone.",
    *usual("study"),
    col("lead", str, "as it is, the base"),
    col("variant", str, "its name in the study file"),
    col("words", str, "what the variant changes"),
    col("antagonists", str, 'joined by "+"'),
    *usual("partition"),
    col("mix", str, "of the variant"),
    col("base_mix", str, "of the lead as it is"),
    *interval(
        "slowdown", "of the variant, as in effects", "95 % between launches; NaN below three launches, here and below"
    ),
    *interval("base_slowdown", "of the lead as it is, as in effects"),
    *interval(
        "ratio",
        "slowdown of the variant / slowdown of the base: below 1 the variant loses less",
        "95 %, Welch's t over the launches of both",
    ),
    *usual("launches"),
    col("base_launches", int, "launches of the lead as it is"),
    *usual("p_value"),
    col("p_holm", float, "adjusted over the study's rows, those under partitions by themselves"),
    col("verdict", str, "more sensitive, less sensitive, no difference, unclear, too few launches, no data"),
    *interval(
        "speed",
        "how many times as fast as the base the variant is alone, with `work` in it",
        "95 %, Welch's t over the launches of both",
    ),
    *interval("speed_beside", "the same of both beside these antagonists"),
    col("work", float, "how many steps of the base one of the variant's is worth"),
    *usual("platform machine"),
    rule="analyse",
    estimate="comparison.launches:variant_effects",
    asked=capabilities.VARIANTS,
)
