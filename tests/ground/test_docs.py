"""The docs leave nothing out: every public name has its place in the API pages."""

import re
from pathlib import Path

import holdfast
from holdfast.cli.tour import ROOMS, is_built

ROOT = Path(__file__).parents[2]


def test_every_public_name_stands_in_the_api_pages_once() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs" / "api").glob("*.md"))
    shown = re.findall(r"^::: holdfast\.(\w+)$", pages, re.MULTILINE)
    assert sorted(shown) == sorted({*holdfast.__all__, "catalogue"} - {"__version__"})


def test_the_readme_says_which_rooms_are_here() -> None:
    readme = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| .* \| (\S+.*) \|$", readme, re.MULTILINE)
    said = {room: state == "**here**" for room, state in rows}
    assert said == {room.name: is_built(room.name) for room in ROOMS}
