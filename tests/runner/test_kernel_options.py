"""The command line of the kernels: sizes, rates, threads, and the message about a bad one."""

import re
import shutil
from pathlib import Path

import pytest

from castmates.workloads.heartbeat import Reader, State
from castmates.workloads.native import build as native
from tests.runner.programs import run

KIB, MIB = 1024, 1024 * 1024


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Caches for CPUs 0 to 255: 48 KiB and 32 KiB in level 1, 2 MiB in level 2, 30 MiB with 15 ways in level 3."""
    root = tmp_path / "sys"
    caches = [("1", "Data", "48K", "12"), ("1", "Instruction", "32K", "8"), ("2", "Unified", "2048K", "16")]
    caches.append(("3", "Unified", "30720K", "15"))
    shared = tmp_path / "cache"
    for index, values in enumerate(caches):
        (shared / f"index{index}").mkdir(parents=True)
        for name, value in zip(("level", "type", "size", "ways_of_associativity"), values, strict=True):
            (shared / f"index{index}" / name).write_text(value + "\n")
    for cpu in range(256):
        place = root / "devices/system/cpu" / f"cpu{cpu}"
        place.mkdir(parents=True)
        (place / "cache").symlink_to(shared)
    return root


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("0.5llc", 15 * MIB),
        ("1llc", 30 * MIB),
        ("2ways", 4 * MIB),
        ("1way", 2 * MIB),
        ("0.25way", MIB // 2),
        ("0.5l2", MIB),
        ("2l1", 96 * KIB),
        ("0.3l3", 30 * MIB * 3 // 10 // 4096 * 4096),
        ("1.5l2", 3 * MIB),
    ],
)
def test_a_share_of_a_cache_is_resolved_and_said_once(kernels, sysfs, size, expected):
    command = [kernels / "chase", "--bytes", size, "--units", "1000"]
    status, out, err = run(command, CASTMATES_SYSFS=str(sysfs))
    assert (status, out) == (0, "")
    assert err.startswith(f"chase: --bytes {size} is {expected} bytes: the level-")
    assert err.count("\n") == 1


def test_ways_are_those_of_the_last_level_and_its_shares_are_said(kernels, sysfs):
    _, _, err = run([kernels / "chase", "--bytes", "2ways", "--units", "9"], CASTMATES_SYSFS=str(sysfs))
    assert re.search(rf"the level-3 cache of CPU \d+ has {30 * MIB} bytes in 15 ways$", err)


@pytest.mark.needs("two-cpus")
def test_threads_on_several_caches_have_a_share_of_each(kernels, sysfs):
    """Eight threads on eight caches divided one cache's share among them."""
    for cpu in range(256):
        cache = sysfs / f"devices/system/cpu/cpu{cpu}/cache"
        own = sysfs.parent / f"cache{cpu}"
        shutil.copytree(cache, own)
        (own / "index3/shared_cpu_list").write_text(f"{cpu}\n")
        cache.unlink()
        cache.symlink_to(own)
    command = [kernels / "stream", "--bytes", "0.01llc", "--threads", "2", "--units", "3"]
    status, _, err = run(command, CASTMATES_SYSFS=str(sysfs))
    assert status == 0
    assert f"is {2 * 30 * MIB // 100 // 4096 * 4096} bytes" in err
    assert "the threads lie on 2 of them" in err


@pytest.mark.parametrize(
    ("size", "missing", "reason"),
    [
        ("0.5llc", "cache", "tells no last-level cache of CPU"),
        ("0.5l4", "", "tells no cache of this level of CPU"),
        ("2ways", "cache/*/ways_of_associativity", "tells no number of ways of the last-level cache of CPU"),
        ("0.5l2", "cache/*/size", "tells no cache of this level"),
    ],
)
def test_a_cache_that_is_not_told_is_said(kernels, sysfs, size, missing, reason):
    for place in list(sysfs.parent.glob(missing)) if missing else ():
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    status, out, err = run([kernels / "chase", "--bytes", size], CASTMATES_SYSFS=str(sysfs))
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert reason in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("stream --bytes 0llc", "a size from 4096 bytes on, such as 64M, 0.5llc"),
        ("stream --bytes 0.5xyz", "but is '0.5xyz'"),
        ("stream --bytes llc", "but is 'llc'"),
        ("stream --bytes 12Q", "but is '12Q'"),
        ("stream --bytes 8K --threads 4", "8192 shared out among 4 threads leaves 2048 for each"),
        ("stream --threads 0", "a whole number from 1 to 4096, but is '0'"),
        ("stream --threads x", "but is 'x'"),
        ("chase --parallel 65", "a whole number from 1 to 64, but is '65'"),
        ("bandwidth --writes 101%", "a share from 0% to 100%, such as 20%, but is '101%'"),
        ("bandwidth --writes 33", "a share from 0% to 100%, such as 20%, but is '33'"),
        ("bandwidth --rate 0", "or of bytes a second, such as 5GB/s, but is '0'"),
        ("bandwidth --rate 5GB", "but is '5GB'"),
        ("bandwidth --rate -1", "but is '-1'"),
        ("bandwidth --rate GB/s", "but is 'GB/s'"),
        ("compute --rate 5GB/s", "a number of units a second, such as 20M, but is '5GB/s'"),
        ("stream --mode tetrad", "one of triad, copy, read, write, nontemporal, but is 'tetrad'"),
        ("stream --parallel 2", "--parallel"),
        ("chase --mode triad", "--mode"),
        ("chase --huge=yes", "--huge"),
        ("spin --rate 1M", "--rate"),
        ("stream --bytes -5", "but is '-5'"),
        ("stream --bytes 100", "but is '100'"),
        ("chase --bytes 99999999999G", "but is '99999999999G'"),
        ("chase --bytes", "--bytes"),
        ("compute --bytes 1M", "--bytes"),
        ("spin --units 0", "but is '0'"),
        ("spin more", "more"),
        ("loop", "command"),
        ("loop --units x true", "'x'"),
        ("loop --nonesuch true", "--nonesuch"),
        ("gather --mode all", "but is 'all'"),
        ("gather --bytes 1K", "1K"),
        ("stencil --bytes 16K", "16K"),
        ("tlb --parallel 65", "but is '65'"),
        ("integer --bytes 1M", "--bytes"),
        ("avx --threads 0", "but is '0'"),
        ("sharing --mode maybe", "but is 'maybe'"),
        ("fileio --bytes 4K", "4K"),
        ("icache --units x", "but is 'x'"),
        ("mix", "mix"),
        ("mix tree", "tree"),
        ("mix tree:0", "tree:0"),
        ("mix trees:9", "trees"),
        ("mix tree.red:9", "tree.red"),
        ("mix avx:9", "avx:9"),
        ("mix avx:1024:4M", "avx:1024:4M"),
        ("mix tree:9:1", "but is '1'"),
        ("mix a:1 --units 3", "a:1"),
        ("mix stream.copy:3:4K --threads 8", "stream.copy:3:4K"),
        ("mix integer:9 tlb:9:256K --threads 16", "tlb:9:256K"),
    ],
)
def test_bad_arguments_are_one_sentence_and_status_2(kernels, arguments, words):
    program, *options = arguments.split()
    status, out, err = run([kernels / program, *options])
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words in err


@pytest.mark.parametrize("kernel", [kernel for kernel in native.KERNELS if kernel not in (*native.KEEPERS, "mix")])
def test_help_names_every_option_that_is_taken_and_no_other(kernels, kernel):
    _, help_text, _ = run([kernels / kernel, "--help"])
    for option in ("bytes", "rate", "threads", "parallel", "writes", "huge", "small", "mode", "directory", "units"):
        value = [] if option in ("huge", "small") else [""]
        _, _, err = run([kernels / kernel, f"--{option}", *value, "--units", "x"])
        refused = "unrecognized option" in err
        assert (f"  --{option} " in help_text or f"  --{option}\n" in help_text) is not refused, (option, err)


MODES = [("stream", "--mode", mode) for mode in ("triad", "copy", "read", "write", "nontemporal")]
KNOBS = [
    *MODES,
    ("stream", "--huge"),
    ("chase", "--parallel", "2"),
    ("chase", "--parallel", "7"),
    ("chase", "--parallel", "64", "--huge"),
    ("chase", "--small"),
    ("capacity", "--parallel", "3", "--writes", "30%"),
    ("capacity", "--writes", "100%"),
    ("bandwidth", "--writes", "0"),
    ("bandwidth", "--writes", "33%", "--huge"),
    ("bandwidth", "--writes", "100%"),
]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("words", KNOBS, ids="-".join)
def test_units_are_exact_and_right_with_every_knob(kernels, beats, words, threads):
    kernel, *knobs = words
    units = 1203 if kernel == "stream" else 120012
    command = [kernels / kernel, "--bytes", "200K", "--units", str(units), "--threads", str(threads), *knobs]
    assert run(command, beats) == (0, "", "")
    with Reader(beats) as reader:
        assert reader.state is State.FINISHED
        assert reader.beats(0).records[-1][1] == units


def test_units_of_a_held_rate_are_exact_with_threads(kernels, beats):
    command = [kernels / "bandwidth", "--bytes", "1M", "--units", "400K", "--threads", "2", "--rate", "1M"]
    status, _, _ = run(command, beats)
    assert status == 0
    with Reader(beats) as reader:
        assert reader.beats(0).records[-1][1] == 400 * KIB


def test_units_are_rounded_up_to_whole_steps(kernels, beats):
    assert run([kernels / "stream", "--bytes", "96K", "--units", "10"], beats)[0] == 0
    with Reader(beats) as reader:
        assert reader.beats(0).records[-1][1] == 12
