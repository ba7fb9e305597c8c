"""How tests ask the fake for its refusals."""

import errno

import pytest

from castmates.rdt.fake import FakeResctrl


def refused(call, *arguments) -> str:
    """Return the errno with which a call is refused."""
    with pytest.raises(OSError) as caught:
        call(*arguments)
    return errno.errorcode[caught.value.errno]


def status(fake: FakeResctrl) -> str:
    return fake.read("info/last_cmd_status").rstrip("\n")
