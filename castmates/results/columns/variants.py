"""The data contract of variants of leads. Add columns at the end, never rename or reorder."""

from castmates.results.columns.block import Columns

# tables/variant_effects.csv: whether a lead in other settings loses more or less than the lead as it is; a row per
# variant × antagonists × partition × platform. Leads against solo.
VARIANT_EFFECTS: Columns = {
    "study": "str",
    "lead": "str",  # as it is, the base
    "variant": "str",  # its name in the study file
    "words": "str",  # what the variant changes
    "antagonists": "str",  # joined by "+"
    "partition": "str",
    "mix": "str",  # of the variant
    "base_mix": "str",  # of the lead as it is
    "slowdown": "float64",  # of the variant, as in effects
    "slowdown_low": "float64",  # 95 % between launches; NaN below three blocks, here and below
    "slowdown_high": "float64",
    "base_slowdown": "float64",  # of the lead as it is, as in effects
    "base_slowdown_low": "float64",
    "base_slowdown_high": "float64",
    "ratio": "float64",  # slowdown of the variant / slowdown of the base: below 1 the variant loses less
    "ratio_low": "float64",  # 95 %, Welch's t over the launches of both
    "ratio_high": "float64",
    "blocks": "int64",
    "base_blocks": "int64",  # launches of the lead as it is
    "p_value": "float64",
    "p_holm": "float64",  # adjusted over the study's rows, those under partitions by themselves
    "verdict": "str",  # more sensitive, less sensitive, no difference, can't tell yet, too few launches, no data
    "speed": "float64",  # how many times as fast as the base the variant is alone, with `work` in it
    "speed_low": "float64",  # 95 %, Welch's t over the launches of both
    "speed_high": "float64",
    "speed_beside": "float64",  # the same of both beside these antagonists
    "speed_beside_low": "float64",
    "speed_beside_high": "float64",
    "work": "float64",  # how many steps of the base one of the variant's is worth
    "platform": "str",
    "machine": "str",  # the class of nodes; "" in a study without classes
}
