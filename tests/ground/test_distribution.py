"""What is published: one distribution that brings nothing else, typed, with its command."""

import subprocess
import sys
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_installing_holdfast_brings_nothing_else() -> None:
    requires = distribution("holdfast").requires or []
    assert [line for line in requires if "extra ==" not in line] == []


def test_the_extras_are_those_that_the_docs_name() -> None:
    extras = distribution("holdfast").metadata.get_all("Provides-Extra") or []
    assert sorted(extras) == ["all", "cli", "cluster", "langgraph", "rx", "test", "tour", "watch"]


def test_it_is_typed() -> None:
    assert (files("holdfast") / "py.typed").is_file()


def test_the_changelog_speaks_of_this_version() -> None:
    assert distribution("holdfast").version in (ROOT / "CHANGELOG.md").read_text()


def test_importing_holdfast_imports_the_standard_library_only() -> None:
    """People embed it: no neighbour comes in by the back door, even when it is installed."""
    program = (
        "import sys; before = set(sys.modules); import holdfast, holdfast.catalogue; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    assert set(result.stdout.split()) - sys.stdlib_module_names == {"holdfast"}
