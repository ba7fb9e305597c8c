"""What is written wrongly under the keys for servers is one sentence with file, line, key and what was expected."""

import pytest

from castmates.study import catalogue
from castmates.study.model import Catalogue, Study
from castmates.study.reading import read_keys
from tests.unit.snapshots import assert_as_before, refusal

MIX = "name: x\nmixes:\n  - {{lead: a, antagonists: [b], {}}}\n"
AGAINST = "name: x\nmitigations:\n  - {{lead: a, antagonists: [b], {}}}\n"
PREPARE = "name: x\nleads: [a]\nmachine: {{prepare: {{{}}}}}\n"
MODEL = "name: x\nleads: [a]\nmodel: {{{}}}\n"
WRONG = {
    MIX: ["distance: near", "distance: []", "distance: {llc: 1}", "distance: true", "count: 0", "count: []",
          "count: 1.5", "count: [1, -2]", "share: {quota: []}", "share: {quota: 0.5%}", "share: {quota: [10%, 50]}",
          "share: {period: 5}"],
    AGAINST: ["kinds: []", "kinds: ways"],
    PREPARE: ["uncore: fast", "uncore: 50", "uncore: true"],
    MODEL: ["tied: perhaps", "io_ways: 0x600", "io_ways: ways"],
}  # fmt: skip


def test_one_sentence_names_the_line_the_key_and_what_it_takes():
    said = {
        written: refusal(read_keys, Study, form.format(written), "study.yaml")
        for form, mistakes in WRONG.items() for written in mistakes
    }  # fmt: skip
    assert_as_before("bad-input", said)


def test_one_place_and_one_number_need_no_list():
    (mix,) = read_keys(Study, MIX.format("distance: llc, count: 2"), "study.yaml").mixes
    assert (mix.distance, mix.count) == (["llc"], [2])


def options(written, environment="native", command="x"):
    text = f"workloads:\n  big:\n    command: {command}\n    environment: {environment}\n    options: {{{written}}}\n"
    text += "    progress: heartbeat\n    requests: true\n" if command == "openloop" else ""
    files = [("w.yaml", read_keys(Catalogue, text, "w.yaml"))]
    return catalogue.gather_catalogue(
        files, read_keys(Study, "name: x\n", "study.yaml"), "study.yaml", ("native", "castmates")
    )["big"]


@pytest.mark.parametrize(
    "written",
    ["bytes: 64M", "bytes: 4096", "bytes: 0.5llc", "bytes: 2ways", "bytes: 1way", "bytes: 2l2", "bytes: false",
     "rate: 5GB/s", "rate: 20M", "rate: 0.5", "rate: 60%", "rate: 100%", 'bytes: "{buffer}"'],
)  # fmt: skip
def test_sizes_and_rates_of_our_kernels(written):
    assert options(written)


SLIPS = {
    "bytes": ("4lcl", "64MB", "0llc", "0", "-4llc", "half", "2 ways", "true", "50%"),
    "rate": ("60% of peak", "fast", "0", "0%", "101%", "160%", "5 GB/s", "5GB", "-1M"),
}
OF_SERVICES = ("load: fast", "load: 5K, server: mysql", "writes: 10", "connections: 300", "loads: 5K")


def test_a_slip_in_the_options_of_our_programs_is_found_when_the_study_is_read():
    written = [f"{key}: {each}" for key, slips in SLIPS.items() for each in slips]
    said = {each: refusal(options, each) for each in written}
    assert_as_before("options", said | {each: refusal(options, each, command="openloop") for each in OF_SERVICES})
    assert all(options(each, "castmates") for each in written), "of programs that are not ours nothing is known"
    assert options("load: 2.5K, keys: 20K, writes: 0, wait: spin", command="openloop")
