"""Open descriptors are listed, each with its target."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from handfast._census import DEFAULT, owned_by, recording, take
from handfast._census.kinds import descriptors
from handfast._census.kinds.connections import address
from handfast._census.live_object import LiveObject


@pytest.fixture
def new() -> Callable[[], list[LiveObject]]:
    """The descriptors that were opened since the test began."""
    before = take(["descriptors"])

    def look() -> list[LiveObject]:
        found = take(["descriptors"]).since(before)
        return [live for live in found if not live.library]

    return look


def test_descriptors_are_listed_on_request_only() -> None:
    assert "descriptors" not in DEFAULT


def test_listing_opens_nothing(new: Callable[[], list[LiveObject]]) -> None:
    assert new() == []
    assert new() == []


def test_a_file_is_shown_with_its_path(new: Callable[[], list[LiveObject]], tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("w") as file:
        (live,) = new()
        assert live.code == "HF751"
        assert live.what == f"descriptor {file.fileno()} -> {path}"
        assert (live.creation, live.waiting_at(), live.part_of()) == (None, (), None)
        assert not live.ends_by_itself
        assert not live.ended()
    assert live.ended()
    assert new() == []


def test_a_deleted_file_is_the_same_object(
    new: Callable[[], list[LiveObject]], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    with path.open("w"):
        (live,) = new()
        path.unlink()
        assert not live.ended()
        assert [again.key for again in new()] == [live.key]


def test_a_reused_number_is_another_object(
    new: Callable[[], list[LiveObject]], tmp_path: Path
) -> None:
    with (tmp_path / "one").open("w") as one, (tmp_path / "two").open("w") as two:
        first = next(live for live in new() if live.target == one.fileno())
        os.dup2(two.fileno(), one.fileno())
        assert first.ended()
        assert first.key not in {live.key for live in new()}


def test_a_pipe_is_two_descriptors(new: Callable[[], list[LiveObject]]) -> None:
    ends = os.pipe()
    try:
        assert {live.target for live in new()} == set(ends)
        assert all(" -> pipe:[" in live.what for live in new())
    finally:
        for end in ends:
            os.close(end)


def test_a_socket_is_shown_with_its_addresses(new: Callable[[], list[LiveObject]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (listening,) = new()
        assert listening.what.endswith(f"] at 127.0.0.1:{port}")
        with socket.create_connection(("127.0.0.1", port)) as client:
            ours = client.getsockname()[1]
            what = {live.target: live.what for live in new()}[client.fileno()]
            assert what.endswith(f"] at 127.0.0.1:{ours} connected to 127.0.0.1:{port}")
            assert client.fileno() != -1
        server.getsockname()  # listing has closed nothing
    assert listening.ended()


def test_other_socket_families_are_shown(
    new: Callable[[], list[LiveObject]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("here.sock")
        (live,) = new()
        assert live.what.endswith("] at here.sock")
    assert address(("::1", 80, 0, 0)) == "[::1]:80"
    assert address(b"\0abstract") == "@abstract"


def test_without_a_free_descriptor_the_addresses_are_left_out(
    new: Callable[[], list[LiveObject]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(number: int) -> int:
        raise OSError(24, "Too many open files")

    with socket.socket(), monkeypatch.context() as full:
        full.setattr(os, "dup", none_left)
        (live,) = new()
        assert live.what.endswith("]")


def test_a_socket_has_the_line_that_created_it(new: Callable[[], list[LiveObject]]) -> None:
    with recording(), owned_by("the test"):
        made = socket.socket()  # here
    with made:
        (live,) = new()
        assert live.creation is not None
        assert live.creation.origin.source == "made = socket.socket()  # here"
        assert live.creation.owner == "the test"


def test_the_creation_of_a_closed_socket_is_not_used_for_the_next_one(
    new: Callable[[], list[LiveObject]],
) -> None:
    with recording():
        made = socket.socket()
    number = made.fileno()
    made.close()
    with open(os.devnull) as file:
        assert file.fileno() == number
        (live,) = new()
        assert live.creation is None


def test_what_cannot_be_listed_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descriptors, "_LIST", "/nowhere/at/all")
    census = take(["descriptors"])
    assert census.objects == ()
    assert census.not_checked == ("descriptors cannot be seen: /proc is not here",)


def test_after_the_recording_the_originals_are_restored() -> None:
    before = socket.socket.__init__
    with recording():
        assert socket.socket.__init__ is not before
    assert socket.socket.__init__ is before
