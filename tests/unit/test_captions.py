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


def usual(folder, blocks):
    return read_results(make(folder, blocks=blocks))


def with_topdown(folder, blocks):
    made = make(folder, blocks=blocks)
    topdown_maker.add(made)
    return read_results(made)


def with_phases_of(folder, blocks):
    return with_phases(folder, blocks=blocks)


def with_costs(folder, blocks):
    make(folder, leads=["a"], blocks=blocks)
    for place in folder.glob("blocks/*/*/block.json"):
        record = json.loads(place.read_text())
        place.write_text(json.dumps(record | {"costs": {"perf": {"logs": [0.01, 0.02], "seconds": 0.1}}}))
    return read_results(folder)


MADE = {  # results that show what a figure has intervals of
    **dict.fromkeys(("heatmap", "attribution", "control"), usual),
    "health": with_costs,
    **dict.fromkeys(UNDER, lambda _, blocks: of_shares(atoms(), blocks=blocks)),
    "steptimes": lambda folder, blocks: steptimes.results(folder, blocks=blocks),
    "counters": lambda folder, blocks: counted.results(folder, *counted.made_up(blocks)),
    "topdown": with_topdown,
    "phases": with_phases_of,
    **dict.fromkeys(("phase_counts", "topdown_phases"), lambda folder, blocks: by_phase.made(folder, blocks=blocks)),
    "counters_evolution": rounds.study,
    "distances": lambda _, blocks: distances.results(blocks),
    "mitigations": lambda _, blocks: mitigations.results(blocks),
    "system_mixes": lambda _, blocks: mixes.results(blocks),
    "services": lambda _, blocks: services.results(blocks),
    **dict.fromkeys(("operations", "waterfall"), operations_maker.results),
    "path_waterfall": dataflow_maker.results,
    "roofline": primitives_maker.results,
    "predicted_losses": lambda _, blocks: prediction.results(blocks),
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
    told = texts_for(name, of_shares(atoms(), blocks=2)).caption
    assert "t interval" not in told
    assert "too few launches for intervals" in told
    assert "(2 launches)" in told
