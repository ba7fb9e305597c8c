"""The tables and methods of a paper, from the frozen modelled study: their numbers are those of its own tables."""

import dataclasses
import json
import re

import pytest

from castmates.pipeline.analyse import Terms, write_tables
from castmates.report.paper import methods
from castmates.report.paper.tables import paper_tables
from castmates.report.results import read_results
from castmates.report.text.recommendation import context, measured_ways
from castmates.results.folder import StudyFolder
from castmates.results.plans import read_plan
from tests.golden.report import MARGIN, STUDY, unpack
from tests.unit.caches import cache
from tests.unit.snapshots import assert_as_before

LIMIT = 10.0


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    unpack(folder)
    machine = json.loads((folder / "machine.json").read_bytes())
    plan = read_plan(folder / "plan.json")
    write_tables(plan, StudyFolder(folder), Terms(MARGIN, machine=machine, limit_pct=LIMIT), folder / "tables")
    return read_results(folder, STUDY)


@pytest.fixture(scope="module")
def tables(results):
    return paper_tables(results)


def cells(text):
    lines = [line.removesuffix(r" \\") for line in text.splitlines() if line.endswith(r"\\")]
    rows = [re.split(r"(?<!\\)&", line.replace("{[}", "[").replace("$-$", "-")) for line in lines]
    return [
        [cell.strip() for cell in row] for row in rows if row[0].strip() not in ("Member", "Partition", "Mix", "Lead")
    ]


def numbers(row):
    return [float(number) for number in re.findall(r"-?\d+\.\d+", " ".join(row[3:5]))]


def test_the_effects_are_those_of_the_study(results, tables):
    effects = results.effects[(results.effects["role"] == "lead") & (results.effects["partition"] == "unmanaged")]
    found = cells(tables["effects.tex"])
    assert len(found) == len(effects) > 0
    for row, (_, effect) in zip(found, effects.iterrows(), strict=True):
        wanted = [effect[f"loss_{end}"] for end in ("pct", "low", "high")]
        assert numbers(row) == pytest.approx(wanted, abs=0.051)
        assert row[-2:] == [str(effect["launches"]), effect["verdict"]]


def test_every_partition_of_every_mix_is_in_a_table(results, tables):
    under = results.effects[(results.effects["partition"] != "unmanaged") & (results.effects["role"] == "lead")]
    rows = [row for name, text in tables.items() if name.startswith("partitions-") for row in cells(text)]
    assert len(rows) == len(under) > 0


def test_attribution_and_what_members_give_together_are_there(results, tables):
    found = cells(tables["attribution.tex"])
    totals = [row for row in found if row[1] == "total"]
    known = results.attribution[(results.attribution["part"] == "total") & (results.attribution["launches"] > 0)]
    assert [float(row[2].replace("$-$", "-")) for row in totals] == pytest.approx(known["points"].tolist(), abs=0.051)
    assert {row[-1] for row in found} <= {"loss", "gain", "no loss", "unclear", "too few launches", "no data"}
    assert (
        len(cells(tables["system.tex"]))
        == results.system.loc[results.system["partition"] == "unmanaged", "mix"].nunique()
    )


def values(text):
    return [float(number) for number in re.findall(r"-?\d+\.?\d*", text)]


def test_step_times_are_those_of_the_study(results, tables):
    known = results.latency[results.latency["partition"] == "unmanaged"]
    found = cells(tables["latency.tex"])
    assert len(found) == len(known) > 0
    for row, (_, wanted) in zip(found, known.iterrows(), strict=True):
        assert row[2] == wanted["quantile"]
        if wanted["refused"]:
            assert row[3:] == ["missing", "--", str(wanted["launches"]), "--", "--", "--"]
            continue
        ends = [wanted[name] for name in ("ms", "ms_low", "ms_high")]
        assert values(" ".join(row[3:5])) == pytest.approx(ends, rel=2e-3)
        assert row[5] == str(wanted["launches"])
        ratios = [wanted[name] for name in ("ratio", "ratio_low", "ratio_high")] if wanted["launches_paired"] else []
        assert values(" ".join(row[6:8])) == pytest.approx(ratios, abs=6e-4)
    assert {row[1] for row in found} >= {"nothing", "placebos", "stream", "ranking"}
    assert "left out below 6, 72 and 368 steps" in tables["latency.tex"]


def test_every_mix_has_its_leads_step_times_under_partitions(results, tables):
    under = results.latency.query("partition != 'unmanaged' and role == 'lead' and mix != ''")
    found = [row for name, text in tables.items() if name.startswith("latency-") for row in cells(text)]
    assert len(found) == len(under) > 0
    assert "latency-ranking-stream.tex" in tables


def test_rates_and_knees_are_those_of_the_study(results, tables):
    curves, found = results.sensitivity, cells(tables["sensitivity.tex"])
    named = [row for row in found if row[0]]
    assert len(named) == len(curves.drop_duplicates(["mix", "curve"]))
    wanted = sorted(curves[["rate_pct", "rate_low", "rate_high"]].round(1).itertuples(index=False, name=None))
    told = sorted(tuple(values(" ".join(row[4:6]))) for row in found)
    assert [number for row in told for number in row] == pytest.approx([number for row in wanted for number in row])
    assert all(int(row[3]) and row[6] == "4" for row in found)
    knees = cells(tables["knees.tex"])
    assert [row[3] for row in knees] == ["--" if str(one) == "<NA>" else str(one) for one in results.knees["knee"]]
    assert {row[0] for row in knees} == {"ranking", "vision"}
    whole = "4, and all 8 (the baseline itself)"
    assert [row[5] for row in knees] == ["2 to 6" if one else whole for one in results.knees["antagonists"]]
    assert "for a lead alone, the whole cache, which is the baseline itself" in tables["knees.tex"]
    page = context(results)["knees"]
    assert [row["measured"] for row in page] == [row[5] for row in knees]


@pytest.mark.parametrize(
    ("fewest", "most", "beside", "ways", "told"),
    [
        (4, 8, "", 12, "4 to 8, and all 12 (the baseline itself)"),
        (6, 6, "", 12, "6, and all 12 (the baseline itself)"),
        (4, 12, "", 12, "4 to 12"),
        (4, 8, "", None, "4 to 8"),
        (6, 6, "stream", 12, "6"),
        (4, 8, "stream", 12, "4 to 8"),
    ],
)
def test_the_whole_cache_is_told_where_it_counts_as_a_number_of_ways(results, fewest, most, beside, ways, told):
    row = {"lead": "chase", "fewest_ways": fewest, "most_ways": most, "antagonists": beside, "machine": ""}
    plan = results.plan.model_copy(update={"cache": cache(ways) if ways else None})
    assert measured_ways(row, dataclasses.replace(results, plan=plan)) == told


def test_a_recommendation_has_its_search_and_what_fresh_launches_say(results, tables):
    advice = results.recommendations
    found = cells(tables["recommendations.tex"])
    assert [row[0] for row in found] == advice["mix"].tolist()
    assert "within 10 \\%" in tables["recommendations.tex"]
    named = advice["partition"] != ""
    assert named.any()
    for row, (_, wanted) in zip(found, advice.iterrows(), strict=True):
        if not wanted["partition"]:
            assert row[1:] == [*["--"] * 8, wanted["verdict"]]
            continue
        assert row[1:4] == [wanted["partition"], f"{wanted['lead_ways']} of {wanted['cache_ways']}", "search"]
        assert values(row[4]) == pytest.approx([wanted[f"loss_{end}"] for end in ("pct", "low", "high")], abs=0.051)
        assert values(row[5]) == pytest.approx([wanted["bound_pct"]], abs=0.051)
        faster = [wanted[name] for name in ("faster", "faster_low", "faster_high")]
        assert values(row[6]) == pytest.approx(faster, abs=0.0051)
        assert row[8:] == ["4", wanted["verdict"] + ", not confirmed yet" * (wanted["verdict"] == "met")]
    told = {"confirmed_in": "again", "confirmation": "exceeded", "confirmed_launches": 3, "confirmed_loss_pct": 12.0}
    told |= {"confirmed_loss_low": 11.0, "confirmed_loss_high": 13.0}
    text = paper_tables(dataclasses.replace(results, recommendations=advice.assign(**told)))["recommendations.tex"]
    fresh = [row for row in cells(text) if row[3] == "fresh launches"]
    assert len(fresh) == named.sum()
    assert fresh[0][4:] == ["12.0 [11.0, 13.0]", "--", "--", "--", "3", "exceeded"]
    text = paper_tables(dataclasses.replace(results, recommendations=advice.assign(verdict="no sweep", partition="")))
    assert cells(text["recommendations.tex"])[0][1:8] == ["--"] * 7


def test_what_may_be_biased_is_marked_in_every_table_that_can_tell(results, tables):
    known = {name: getattr(results, name) for name in ("effects", "attribution", "system", "latency")}
    assert not any("ddag" in text or "biased" in text for text in tables.values())
    biased = {name: table.assign(possibly_biased=True) for name, table in known.items()}
    marked = {name for name, text in paper_tables(dataclasses.replace(results, **biased)).items() if "ddag" in text}
    assert marked == set(tables) - {"controls.tex", "sensitivity.tex", "knees.tex", "recommendations.tex"}


def test_the_methods_have_the_partitions(results):
    assert_as_before("methods-of-partitions", {"golden": methods.as_markdown(methods.paragraphs(results))})
