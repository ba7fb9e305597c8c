"""The twins of the catalogue for real: each runs once on a small input, and what it made is looked at."""

import hashlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from castmates.study.model import Catalogue, Workload
from castmates.study.reading import read_keys
from castmates.workloads import identity, inputs
from tests.needs import INSISTED, lacks, why_not
from tests.runner import twin_packages

ROOT = Path(__file__).resolve().parents[2]
FILES = [ROOT / "config" / "workloads" / name for name in ("twins.yaml", "suites.yaml")]
TWINS = {
    name: one for file in FILES for name, one in read_keys(Catalogue, file.read_text(), file.name).workloads.items()
}
PATH = os.environ["PATH"] + ":/usr/games"
SMALL = {  # one unit of a data set in a fraction of a second
    "text": ["--bytes", "60000"],
    "video": ["--frames", "4"],
    "csource": ["--functions", "4"],
    "perl": ["--letters", "80"],
    "image": ["--side", "96"],
    "povray": ["--things", "20"],
    "xml": ["--items", "60"],
    "formula": ["--variables", "90"],
    "hpcc": ["--side", "100"],
}
DIGESTS = {
    "csource": "934cd576",
    "formula": "253e2b3a",
    "hpcc": "9b725ebd",
    "image": "83deed54",
    "perl": "792f315d",
    "povray": "6f33f393",
    "text": "81bb0ea1",
    "video": "0d319080",
    "xml": "e1b4d3c0",
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Makes small data sets, each once."""
    made = {}

    def of(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            command = [sys.executable, "-m", inputs.RECIPES[name].module, "--into", str(made[name]), *SMALL[name]]
            subprocess.run(command, cwd=ROOT, check=True)
        return made[name]

    return of


@pytest.fixture
def once(data, tmp_path):
    """Runs a twin's own command once; words of it may be replaced, so that what it makes can be seen."""

    def run(name: str, **instead: str) -> bytes:
        workload = available(name)
        words = list(workload.words)
        for old, new in [("{inputs}", str(data(workload.inputs)) if workload.inputs else ""), *instead.items()]:
            words = [word.replace(old, new) for word in words]
        variables = {"PATH": PATH, "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1", **workload.variables}
        done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, (shlex.join(words), done.stderr[-600:])
        return done.stdout

    return run


def available(name: str) -> Workload:
    if "twins" in INSISTED:
        why_not("twins")  # which fetches them
    workload = TWINS[name]
    if lack := identity.lack(workload.words, workload.package, PATH):
        if workload.package in twin_packages.TWINS:
            lacks("twins", f"{lack}: `make twins`, or apt-get install {workload.package}")
        pytest.skip(f"{lack}: apt-get install {workload.package}")
    return workload


@pytest.mark.parametrize("name", ["xz", "bzip2", "zstd"])
def test_compressed_text_is_the_text_again(once, data, name):
    packed = once(name)
    text = (data("text") / "text").read_bytes()
    back = subprocess.run([name, "-d", "-c"], input=packed, capture_output=True, check=True).stdout
    assert back == text * (2 if name == "bzip2" else 1)
    assert len(packed) < 0.5 * len(back)


def test_x264_writes_a_stream_with_its_settings(once, tmp_path):
    once("x264", **{"/dev/null": f"{tmp_path}/out.264"})
    stream = (tmp_path / "out.264").read_bytes()
    assert stream.startswith(b"\0\0\0\1")
    assert b" threads=1 " in stream


def test_what_cc1_compiles_computes_the_same_without_optimisation(once, data, tmp_path):
    once("gcc", **{"/dev/null": f"{tmp_path}/fast.s"})
    answers = set()
    for name, source in (("fast", tmp_path / "fast.s"), ("plain", data("csource") / "program.c")):
        subprocess.run(["gcc", "-w", "-O0", source, "-o", tmp_path / name], check=True)
        answers.add(subprocess.run([tmp_path / name], capture_output=True, check=True, timeout=20).stdout)
    assert len(answers) == 1
    assert len(answers.pop().strip()) == 8


def test_perl_finds_every_word_and_every_lure(once, data):
    said = once("perl").decode()
    mail = (data("perl") / "mail").read_text()
    bodies = [letter.split("\n\n", 1)[1] for letter in mail.split("\n\f\n") if letter]
    words = {word for body in bodies for word in re.findall(r"\b[a-z]{4,}\b", body.lower())}
    assert said.startswith(f"{len(words)} words, ")
    assert 0 < int(said.split(" spam")[0].rsplit(" ", 1)[1]) < len(bodies)
    assert once("perl").decode() == said


def test_imagemagick_makes_a_picture_larger(once, tmp_path):
    once("imagemagick", **{"null:": f"ppm:{tmp_path}/out.ppm"})
    width, height = map(int, (tmp_path / "out.ppm").read_bytes().split(None, 3)[1:3])
    assert width == height > 1.5 * 96


def test_povray_draws_every_pixel(once, data):
    once("povray", **{"-F": "+FP"})
    picture = (data("povray") / "scene.ppm").read_bytes()
    assert b"200 150\n255\n" in picture[:2000]
    assert len(set(picture[-200 * 150 * 3 :])) > 100


def test_xalan_lists_every_item(once, data, tmp_path):
    once("xalan", **{"/dev/null": f"{tmp_path}/out.html"})
    page = (tmp_path / "out.html").read_text()
    assert "60 items" in page
    assert page.count("<tr id=") == (data("xml") / "shop.xml").read_text().count("<item ") == 60


def test_stockfish_searches_the_same_nodes_each_time(once):
    available("stockfish")
    command = {"bench 16 1 11": "bench 16 1 4"}
    said = [once("stockfish", **command).decode() for _ in range(2)]
    assert said[0].count("bestmove") > 40
    assert [line for line in said[0].splitlines() if "bestmove" in line] == [
        line for line in said[1].splitlines() if "bestmove" in line
    ]
    assert "No such option" not in said[0]


def test_gnugo_plays_its_game_to_the_end(once):
    once("gnugo", **{"--level 10": "--level 1"})


def test_minisat_refutes_the_formula(once):
    once("minisat")


def test_hpcc_succeeds_and_leaves_nothing(once, tmp_path):
    once("hpcc")
    assert not list(tmp_path.iterdir())


def test_generators_write_the_same_bytes_everywhere(data):
    """Where a digest changes, every study with that data set measures anew: that must be meant."""
    found = {}
    for name in SMALL:
        files = [file for file in sorted(data(name).iterdir()) if file.name != "scene.ppm"]
        found[name] = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]
    assert found == DIGESTS


@pytest.mark.parametrize("name", TWINS)
def test_every_twin_names_its_package_and_its_data_set(name):
    workload = TWINS[name]
    assert workload.package
    assert workload.stresses
    assert (workload.inputs in inputs.RECIPES) == any("{inputs}" in word for word in workload.words)
