"""Captions of figures with intervals state how those were made, and of how many launches. Synthetic results."""

import json
import re

import pytest

from castmates.report.figures.index import FIGURES
from castmates.report.figures.texts import texts_for
from castmates.report.results import read_results
from tests.unit import dataflow_maker, operations_maker, primitives_maker, topdown_maker
from tests.unit import test_counter_rounds as rounds
from tests.unit import test_counters_figure as counted
from tests.unit import test_distances as distances
from tests.unit import test_mitigations as mitigations
from tests.unit import test_prediction as prediction
from tests.unit import test_services_figure as services
from tests.unit import test_steptimes as steptimes
from tests.unit import test_system_mixes_figure as mixes
from tests.unit import test_variants as variants
from tests.unit.partition_maker import atoms
from tests.unit.phases import test_figures_by_phase as by_phase
from tests.unit.phases.test_phase_figures import results as with_phases
from tests.unit.results_maker import make
from tests.unit.test_figure_shares import results as of_shares
from tests.unit.test_trace_page import traced

# Figures that draw no interval between launches.
LONGEST = 60  # words
METHOD = r"95 % t intervals? between launches[^.]*"
UNDER = ("partitions", "heatmap_partitions", "sensitivity", "pareto")


def usual(folder, launches):
    return read_results(make(folder, launches=launches))


def with_topdown(folder, launches):
    made = make(folder, launches=launches)
    topdown_maker.add(made)
    return read_results(made)


def with_phases_of(folder, launches):
    return with_phases(folder, launches=launches)


def with_costs(folder, launches):
    make(folder, leads=["a"], launches=launches)
    for place in folder.glob("launches/*/*/launch.json"):
        record = json.loads(place.read_text())
        place.write_text(json.dumps(record | {"costs": {"perf": {"logs": [0.01, 0.02], "seconds": 0.1}}}))
    return read_results(folder)


MADE = {  # results that show what a figure has intervals of
    **dict.fromkeys(("heatmap", "attribution", "control"), usual),
    "health": with_costs,
    **dict.fromkeys(UNDER, lambda _, launches: of_shares(atoms(), launches=launches)),
    "steptimes": lambda folder, launches: steptimes.results(folder, launches=launches),
    "counters": lambda folder, launches: counted.results(folder, *counted.made_up(launches)),
    "topdown": with_topdown,
    "phases": with_phases_of,
    **dict.fromkeys(
        ("phase_counts", "topdown_phases"), lambda folder, launches: by_phase.made(folder, launches=launches)
    ),
    "counters_evolution": rounds.study,
    "distances": lambda _, launches: distances.results(launches),
    "mitigations": lambda _, launches: mitigations.results(launches),
    "system_mixes": lambda _, launches: mixes.results(launches),
    "services": lambda _, launches: services.results(launches),
    **dict.fromkeys(("operations", "waterfall"), operations_maker.results),
    "path_waterfall": dataflow_maker.results,
    "roofline": primitives_maker.results,
    "predicted_losses": lambda _, launches: prediction.results(launches),
    "variants": variants.results,
}


WITHOUT_INTERVALS = {
    "evolution": with_phases_of,
    "prediction_errors": MADE["predicted_losses"],
    "scheduler": traced,
    "critical_path": dataflow_maker.results,
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_caption_is_short_and_has_the_method_of_its_intervals_and_the_number_of_launches(tmp_path, name):
    texts = texts_for(name, (WITHOUT_INTERVALS | MADE).get(name, usual)(tmp_path / "study", 4))
    told = texts.caption
    if name in MADE:
        assert texts.lacking == ""
        assert re.search(METHOD + r"\((\d to )?4 launches[;)]", told), told
    else:
        assert "95 % t interval" not in told, "in MADE belongs how results are made that show these intervals"
    assert len(told.split()) <= LONGEST, told
    assert not re.search(r"`|pip install|Source:|stamped", told)


@pytest.mark.parametrize("name", ["pareto", "heatmap_partitions"])
def test_no_interval_is_claimed_where_there_are_too_few_launches(name):
    told = texts_for(name, of_shares(atoms(), launches=2)).caption
    assert "t interval" not in told
    assert "too few launches for intervals" in told
    assert "(2 launches)" in told
