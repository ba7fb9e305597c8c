"""The columns that say what a number is of: each list of them has one name, whatever table it is in.

A window measures a cell: a member in a scene, in a round of a launch of a cohort, on a platform.
"""

LAUNCH = ["cohort", "launch"]
ROUND = [*LAUNCH, "round"]
WINDOW = [*LAUNCH, "window", "member"]
PLATFORM_WINDOW = ["platform", *WINDOW]
CELL = ["platform", *ROUND, "scene", "member"]
MEMBER = ["cohort", "scene", "member"]  # of a plan
MIX = ["mix", "partition"]
LEAD_OF_MIX = ["mix", "member"]
ROW = ["row", "platform"]  # of what contrasts of a plan come to

# Of traces, which are of leads.
LEAD = ["study", "member", "platform"]
SCENE = ["study", "scene", "kind", *MIX, "member", "platform"]
SCENE_ROUND = [*SCENE, *ROUND]  # one trace
TRACE = ["study", *LAUNCH, "scene", "kind", *MIX, "member", "platform", "round"]
SAME_ROUND = ["study", *LAUNCH, "member", "platform", "round"]  # of the trace alone and those beside others
EFFECT = ["study", *MIX, "member", "platform"]
