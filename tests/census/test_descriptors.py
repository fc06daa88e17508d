"""The open descriptors are seen, each with what it leads to."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.census import DEFAULT, descriptors, owned_by, recording, take
from holdfast.census.descriptors import Descriptor


@pytest.fixture
def new() -> Callable[[], list[Descriptor]]:
    """The descriptors that have come since the test began."""
    before = take(["descriptors"])

    def look() -> list[Descriptor]:
        found = take(["descriptors"]).since(before)
        return [thing for thing in found if isinstance(thing, Descriptor)]

    return look


def test_they_are_looked_at_on_request_only() -> None:
    assert "descriptors" not in DEFAULT


def test_looking_opens_nothing(new: Callable[[], list[Descriptor]]) -> None:
    assert new() == []
    assert new() == []


def test_a_file_is_shown_with_its_path(new: Callable[[], list[Descriptor]], tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("w") as file:
        (thing,) = new()
        assert thing.code == "HF751"
        assert thing.what == f"descriptor {file.fileno()} -> {path}"
        assert (thing.birth, thing.stands(), thing.part_of) == (None, (), None)
        assert not thing.passing
        assert not thing.over()
    assert thing.over()
    assert new() == []


def test_a_file_whose_name_is_gone_is_the_same_thing(
    new: Callable[[], list[Descriptor]], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    with path.open("w"):
        (thing,) = new()
        path.unlink()
        assert not thing.over()
        assert [again.key for again in new()] == [thing.key]


def test_a_number_that_leads_elsewhere_by_now_is_another_thing(
    new: Callable[[], list[Descriptor]], tmp_path: Path
) -> None:
    with (tmp_path / "one").open("w") as one, (tmp_path / "two").open("w") as two:
        first = next(thing for thing in new() if thing.number == one.fileno())
        os.dup2(two.fileno(), one.fileno())
        assert first.over()
        assert first.key not in {thing.key for thing in new()}


def test_a_pipe_is_two_descriptors(new: Callable[[], list[Descriptor]]) -> None:
    ends = os.pipe()
    try:
        assert {thing.number for thing in new()} == set(ends)
        assert all(" -> pipe:[" in thing.what for thing in new())
    finally:
        for end in ends:
            os.close(end)


def test_a_socket_is_shown_with_its_addresses(new: Callable[[], list[Descriptor]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (listening,) = new()
        assert listening.what.endswith(f"] at 127.0.0.1:{port}")
        with socket.create_connection(("127.0.0.1", port)) as client:
            ours = client.getsockname()[1]
            what = {thing.number: thing.what for thing in new()}[client.fileno()]
            assert what.endswith(f"] at 127.0.0.1:{ours} connected to 127.0.0.1:{port}")
            assert client.fileno() != -1
        server.getsockname()  # looking has closed nothing
    assert listening.over()
    assert listening.what == f"descriptor {listening.number} -> {listening.target}"


def test_other_families_are_shown_in_their_own_words(
    new: Callable[[], list[Descriptor]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("here.sock")
        (thing,) = new()
        assert thing.what.endswith("] at here.sock")
    assert descriptors._in_words(("::1", 80, 0, 0)) == "[::1]:80"
    assert descriptors._in_words(b"\0abstract") == "\0abstract"


def test_without_a_descriptor_to_spare_the_addresses_are_left_out(
    new: Callable[[], list[Descriptor]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(number: int) -> int:
        raise OSError(24, "Too many open files")

    with socket.socket():
        (thing,) = new()
        with monkeypatch.context() as full:
            full.setattr(os, "dup", none_left)
            assert thing.what.endswith("]")


def test_a_socket_is_born_where_it_was_made(new: Callable[[], list[Descriptor]]) -> None:
    with recording(), owned_by("the test"):
        made = socket.socket()  # here
    with made:
        (thing,) = new()
        assert thing.birth is not None
        assert thing.birth.origin.source == "made = socket.socket()  # here"
        assert thing.birth.owner == "the test"


def test_the_birth_of_a_closed_socket_is_not_given_to_the_next_with_its_number(
    new: Callable[[], list[Descriptor]],
) -> None:
    with recording():
        made = socket.socket()
    number = made.fileno()
    made.close()
    with open(os.devnull) as file:
        assert file.fileno() == number
        (thing,) = new()
        assert thing.birth is None


def test_where_nobody_can_look_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "_LIST", "/nowhere/at/all")
    census = take(["descriptors"])
    assert census.things == ()
    assert census.not_checked == ("descriptors cannot be seen: /proc is not here",)


def test_after_the_recording_everything_is_as_it_was() -> None:
    before = socket.socket.__init__
    with recording():
        assert socket.socket.__init__ is not before
    assert socket.socket.__init__ is before
