"""How long launches in which steps are traced will take: as those took that were made, else a guess that says so."""

import json

from castmates.preview.profiles import LAUNCH, TRACE, tracing_time
from castmates.results.columns.operations import PROFILE_RECORD
from castmates.results.folder import StudyFolder
from castmates.study.profile_launches import traces_of
from tests.unit.test_profile_launches import planned


def made(folder, path, lead, *, total, trace, traces, status="measured"):
    place = folder.profile(path)
    place.mkdir(parents=True)
    record = {"status": status, "lead": lead, "seconds": {"total": total, "trace": trace}, "traces": [{}] * traces}
    (place / PROFILE_RECORD).write_text(json.dumps(record))


def test_launches_take_as_long_as_those_of_their_lead_took(tmp_path):
    folder = StudyFolder(tmp_path)
    launches = planned(profile={"launches": 2, "times": 2}).profiles
    assert [traces_of(each) for each in launches] == [6, 6]
    made(folder, "job/1", "job", total=9000, trace=0, traces=0, status="failed")
    assert tracing_time(launches, folder).endswith(" where steps are short"), "a launch that failed tells nothing"
    assert 2 * (LAUNCH + 6 * TRACE) == 42
    assert tracing_time(launches, folder).startswith("about 42 s")
    made(folder, "other/1", "other", total=160, trace=60, traces=3)
    assert tracing_time(launches[:1], folder) == "about 4 min"  # 100 s, and 6 traces of 20 s
    made(folder, "job/2", "job", total=30, trace=20, traces=4)
    assert tracing_time(launches, folder) == "about 80 s", "twice 10 s, and 6 traces of 5 s"
