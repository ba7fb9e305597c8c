"""Schemata mean the same however a kernel pads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.errors import CastmatesError
from castmates.machine.resctrl_state import ALSO, UNTHROTTLED_MIBPS, same_schemata
from castmates.rdt.resctrl.wanted_schemata import is_decimal, one_line, parse, to_write

DOMAINS = st.dictionaries(st.integers(0, 255), st.integers(0, 2**32 - 1), min_size=1, max_size=24)
THROTTLES = st.dictionaries(st.integers(0, 255), st.integers(0, UNTHROTTLED_MIBPS - 1), min_size=1, max_size=24)
SCHEMATA = st.one_of(
    st.dictionaries(st.sampled_from(["L3", "L3CODE", "L3DATA", "L2", "SMBA"]), DOMAINS, min_size=1),
    st.builds(lambda masks, throttles: {"L3": masks, "MB": throttles}, DOMAINS, THROTTLES),
)


def as_kernel(schemata, digits, columns):
    """Write schemata as show_doms() does: right-aligned names, values in columns or not."""
    width = max(map(len, schemata)) + columns
    lines = []
    for name, domains in schemata.items():
        pad = (
            {True: f"{digits}d", False: f"0{digits}x"}[is_decimal(name)]
            if digits
            else {True: "d", False: "x"}[is_decimal(name)]
        )
        lines.append(f"{name:>{width}}:" + ";".join(f"{domain}={value:{pad}}" for domain, value in domains.items()))
    return "\n".join(lines) + "\n"


@given(SCHEMATA, st.integers(0, 9), st.integers(0, 4))
def test_what_any_kernel_shows_is_read(schemata, digits, columns):
    assert parse(as_kernel(schemata, digits, columns)) == schemata


@given(SCHEMATA)
def test_what_is_written_and_what_is_kept_mean_the_same(schemata):
    assert parse(to_write(schemata)) == schemata
    assert parse(one_line(schemata)) == schemata
    assert to_write(schemata).endswith("\n")
    assert "\n" not in one_line(schemata)


@given(SCHEMATA, st.integers(0, 9), st.data())
def test_only_another_value_is_a_difference(schemata, digits, data):
    shown = as_kernel(schemata, digits, 2)
    assert same_schemata(shown, one_line(schemata))
    name = data.draw(st.sampled_from(sorted(schemata)))
    domain = data.draw(st.sampled_from(sorted(schemata[name])))
    other = {line: dict(values) for line, values in schemata.items()}
    other[name][domain] ^= 1
    assert not same_schemata(shown, one_line(other))
    assert same_schemata(shown, one_line(other) + ALSO + one_line(schemata))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("    MB:0=100\n    L3:0=fff\n", {"MB": {0: 100}, "L3": {0: 0xFFF}}),
        ("    MB:0= 50;1=  5\n    L3:0=00f;1=7ff\n", {"MB": {0: 50, 1: 5}, "L3": {0: 0xF, 1: 0x7FF}}),
        ("MB:0=50\nL3:0=f\n", {"MB": {0: 50}, "L3": {0: 0xF}}),
        ("L3DATA:0=00c\nL3CODE:0=030\n", {"L3DATA": {0: 0xC}, "L3CODE": {0: 0x30}}),
        ("MB:0=2048;16=2048\nL3:0=ffff;16=ffff\n", {"MB": {0: 2048, 16: 2048}, "L3": {0: 0xFFFF, 16: 0xFFFF}}),
        ("GMB:0=2048\nSMBA:0=2048\n", {"GMB": {0: 2048}, "SMBA": {0: 2048}}),  # of the whole package, on AMD
        ("L3:uninitialized\nMB:0=100\n", {"MB": {0: 100}}),
        ("", {}),
    ],
)
def test_known_texts(text, expected):
    assert parse(text) == expected


def test_what_is_no_number_is_said():
    with pytest.raises(CastmatesError, match="'L3:0=zz'"):
        parse("L3:0=zz\n")


def test_domain_that_went_offline_is_no_difference():
    assert same_schemata("L3:0=f\n", "L3:0=f;1=ff")
    assert not same_schemata("L3:0=f\n", "L3:1=f")


def test_no_throttle_is_written_so_that_no_kernel_cuts_it():
    """Before 2b5648416e47 a kernel rounds MiB/s up to the step of per cent, and cuts that to 32 bits."""
    shown = "MB:0=4294967295;1=4294967290;2=2000\nL3:0=ffffffff\n"
    assert parse(shown) == {"MB": {0: UNTHROTTLED_MIBPS, 1: UNTHROTTLED_MIBPS, 2: 2000}, "L3": {0: 0xFFFFFFFF}}
    for step in (1, 5, 10, 20, 25, 50):
        assert -(-UNTHROTTLED_MIBPS // step) * step % 2**32 == UNTHROTTLED_MIBPS
    assert same_schemata("MB:0=4294967295", f"MB:0={UNTHROTTLED_MIBPS}")
    assert not same_schemata("MB:0=4", "MB:0=4294967295")
