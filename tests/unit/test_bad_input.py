"""What is written wrongly under the keys for servers is one sentence with file, line, key and what was expected."""

import re

import pytest

from castmates.errors import CastmatesError
from castmates.study import catalogue
from castmates.study.model import Catalogue, Study
from castmates.study.reading import read_keys

MIX = "name: x\nmixes:\n  - {{lead: a, antagonists: [b], {}}}\n"
AGAINST = "name: x\nmitigations:\n  - {{lead: a, antagonists: [b], {}}}\n"
PREPARE = "name: x\nleads: [a]\nmachine: {{prepare: {{{}}}}}\n"
MODEL = "name: x\nleads: [a]\nmodel: {{{}}}\n"
PLACES = "one of smt, core, llc, socket, other-socket, or a list of these"
QUOTAS = "whole per cents of CPU time from 1% to 99%, or a list of these"
NUMBERS = "a whole number from 1 to 256, or a list of these"
CLOCK = "highest, lowest, or a clock from 100 to 12700 MHz"
MASK = 'a way mask in hexadecimal digits and in quotes, such as "0x00f"'


@pytest.mark.parametrize(
    ("form", "written", "key", "expected"),
    [
        (MIX, "distance: near", "mixes.1.distance", "'smt', 'core', 'llc', 'socket' or 'other-socket'"),
        (MIX, "distance: []", "mixes.1.distance", PLACES),
        (MIX, "distance: {llc: 1}", "mixes.1.distance", PLACES),
        (MIX, "distance: true", "mixes.1.distance", PLACES),
        (MIX, "count: 0", "mixes.1.count", "greater than or equal to 1"),
        (MIX, "count: []", "mixes.1.count", NUMBERS),
        (MIX, "count: 1.5", "mixes.1.count", NUMBERS),
        (MIX, "count: [1, -2]", "mixes.1.count.2", "greater than or equal to 1"),
        (MIX, "share: {quota: []}", "mixes.1.share.quota", QUOTAS),
        (MIX, "share: {quota: 0.5%}", "mixes.1.share.quota", QUOTAS),
        (MIX, "share: {quota: [10%, 50]}", "mixes.1.share.quota", "50%: shares are written with %"),
        (MIX, "share: {period: 5}", "mixes.1.share", "'cpus', 'quota' or both: a period alone limits nothing"),
        (AGAINST, "kinds: []", "mitigations.1.kinds", "a list of one or more"),
        (AGAINST, "kinds: ways", "mitigations.1.kinds", "a valid list, such as [a, b]"),
        (PREPARE, "uncore: fast", "machine.prepare.uncore", CLOCK),
        (PREPARE, "uncore: 50", "machine.prepare.uncore", CLOCK),
        (PREPARE, "uncore: true", "machine.prepare.uncore", CLOCK),
        (MODEL, "tied: perhaps", "model.tied", "true or false"),
        (MODEL, "io_ways: 0x600", "model.io_ways", MASK),
        (MODEL, "io_ways: ways", "model.io_ways", MASK),
    ],
)
def test_one_sentence_names_the_key_and_what_it_takes(form, written, key, expected):
    with pytest.raises(CastmatesError) as refused:
        read_keys(Study, form.format(written), "study.yaml")
    (sentence,) = str(refused.value).splitlines()
    assert re.fullmatch(
        rf"study\.yaml, line 3: '{re.escape(key)}' is .*, but expected {re.escape(expected)}\.", sentence
    )


def test_one_place_and_one_number_need_no_list():
    (mix,) = read_keys(Study, MIX.format("distance: llc, count: 2"), "study.yaml").mixes
    assert (mix.distance, mix.count) == (["llc"], [2])


def options(written, environment="native", command="x"):
    text = f"workloads:\n  big:\n    command: {command}\n    environment: {environment}\n    options: {{{written}}}\n"
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


@pytest.mark.parametrize(
    ("key", "written"),
    [("bytes", each) for each in ("4lcl", "64MB", "0llc", "0", "-4llc", "half", "2 ways", "true", "50%")]
    + [("rate", each) for each in ("60% of peak", "fast", "0", "0%", "101%", "160%", "5 GB/s", "5GB", "-1M")],
)
def test_a_slip_in_a_size_or_a_rate_is_found_when_the_study_is_read(key, written):
    expected = {"bytes": "a size such as 64M, or in shares of a cache", "rate": "a rate such as 5GB/s, 20M"}[key]
    shown = "True" if written == "true" else re.escape(written)
    with pytest.raises(
        CastmatesError, match=rf"^w\.yaml: .*'big' has 'options\.{key}: {shown}', but expected {expected}"
    ):
        options(f"{key}: {written}")
    assert options(f"{key}: {written}", "castmates"), "of programs that are not ours nothing is known"


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("load: fast", "'options.load: fast', but expected a number of requests a second, such as 20000 or 20K"),
        ("load: 5K, server: mysql", "'options.server: mysql', but expected memcached, redis or nginx"),
        ("writes: 10", "'options.writes: 10', but expected a share from 0% to 100%, such as 20%"),
        ("connections: 300", "'options.connections: 300', but expected a whole number from 1 to 256"),
        ("loads: 5K", "'options.loads', which openloop does not have; it has server, load, connections"),
    ],
)
def test_a_slip_in_the_options_of_a_service_is_found_when_the_study_is_read(written, why):
    with pytest.raises(CastmatesError, match=rf"^w\.yaml: the workload 'big' has {re.escape(why)}"):
        options(written, command="openloop")
    assert options("load: 2.5K, keys: 20K, writes: 0, wait: spin", command="openloop")
