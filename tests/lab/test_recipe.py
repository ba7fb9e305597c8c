"""The parts of the recipe that decide something, without building anything."""

import platform
import shutil

import pytest

from tests.lab.kit import build, debian, kernels
from tests.lab.kit.common import NoLab, call, whole
from tests.lab.kit.debian import mirror, numbers

LINES = """
# deb http://commented.example/debian bookworm main
deb [arch=amd64 signed-by=/usr/share/keyrings/other.gpg] http://other.example/apt stable-ish main
deb http://security.example/debian-security bookworm-security main
deb [arch=amd64 signed-by=/keys/debian.gpg] http://mirror.example/debian/ bookworm main contrib
"""
PARAGRAPHS = """
Types: deb
# a remark
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main

Types: deb deb-src
URIs: https://mirror.example/debian https://second.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /keys/debian.gpg
"""
INLINE_KEY = """Types: deb
URIs: http://mirror.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY LAUNCH-----
 .
 -----END PGP PUBLIC KEY LAUNCH-----
"""


def test_mirror_is_read_from_both_notations_of_apt():
    assert mirror([LINES]) == ("http://mirror.example/debian/", "/keys/debian.gpg")
    assert mirror([PARAGRAPHS]) == ("https://mirror.example/debian", "/keys/debian.gpg")
    assert mirror(["", "deb http://mirror.example/debian bookworm main\n"]) == ("http://mirror.example/debian", None)


def test_key_inside_a_source_file_is_left_to_apt():
    assert mirror([INLINE_KEY]) == ("http://mirror.example/debian", None)


def test_machine_without_a_mirror_of_debian_is_told():
    with pytest.raises(NoLab, match="knows no mirror"):
        mirror(["deb http://archive.example/ubuntu noble main\n", "Types: deb\nURIs: x\nSuites: trixie\n"])


def test_preferred_kernel_is_taken_while_the_mirror_has_it():
    preferred = kernels.PREFERRED["6.1"]
    packages = ["linux-image-6.1.0-99-amd64", f"linux-image-{preferred}", "linux-image-6.1.0-51-rt-amd64"]
    assert kernels.choose("6.1", packages) == preferred


def test_else_the_newest_ordinary_kernel_of_the_series():
    packages = [
        *("linux-image-6.12.9+deb12-amd64", "linux-image-6.12.101+deb12-amd64", "linux-image-6.12.200+deb12-rt-amd64"),
        *("linux-image-6.12.101+deb12-amd64-dbg", "linux-image-6.12.300+deb12-cloud-amd64"),
        "linux-image-6.13.1+deb12-amd64",
    ]
    assert kernels.choose("6.12", packages) == "6.12.101+deb12-amd64"
    with pytest.raises(NoLab, match=r"no Linux 6\.1"):
        kernels.choose("6.1", packages)


def test_versions_are_ordered_by_their_numbers():
    assert numbers("1:7.2+dfsg-7+deb12u18") > numbers("1:7.2+dfsg-7+deb12u9")


def test_other_processors_and_systems_are_told(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "this machine is aarch64" in debian.unfit()
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"PRETTY_NAME": "Fedora 43", "ID": "fedora"})
    assert "this is Fedora 43" in debian.unfit()
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"VERSION_CODENAME": "bookworm"})
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "gcc" else name)
    assert debian.unfit() == "this machine lacks gcc"


def test_folder_that_is_not_filled_does_not_appear(tmp_path):

    def fail_midway():
        with whole(tmp_path / "product") as part:
            (part / "half").write_text("")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_midway()
    assert not (tmp_path / "product").exists()
    with whole(tmp_path / "product") as part:
        (part / "all").write_text("")
    assert [file.name for file in (tmp_path / "product").iterdir()] == ["all"]


def test_failed_command_is_told_with_its_last_words(tmp_path):
    with pytest.raises(NoLab, match=r"`sh -c .*` failed: no such host"):
        call(["sh", "-c", "echo trying >&2; echo no such host >&2; exit 1"])
    with pytest.raises(NoLab, match="No such file"):
        call([tmp_path / "nothing"])


def test_products_change_with_the_recipe_only(tmp_path, monkeypatch):
    monkeypatch.setenv("CASTMATES_LAB_CACHE", str(tmp_path))
    before = build._products()
    edited = tmp_path / "init.sh"
    edited.write_text("#!/bin/busybox sh\n")
    monkeypatch.setattr(kernels, "INIT", edited)
    after = build._products()
    assert after["qemu"] == before["qemu"]
    assert after["6.1"] != before["6.1"]
    assert build.built() is None
