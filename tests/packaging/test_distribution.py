"""The distribution: no dependencies, typed, one version, and installation lines that work."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

import pytest

import handfast
from handfast._asyncio_internals import TESTED_PYTHONS

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
# `pip install` of this project: `.`, `".[cli,test]"`, `'handfast[cli]'`, with options before it.
INSTALL_LINE = re.compile(r"""pip install (?:-\w+ )*["']?(\.|handfast)(?:\[([\w,]+)\])?(?![\w/])""")
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src").rglob("*.py")),
]


def test_handfast_has_no_dependencies() -> None:
    assert PYPROJECT["project"]["dependencies"] == []
    requires = distribution("handfast").requires or []
    assert [line for line in requires if "extra ==" not in line] == []


def test_the_extras() -> None:
    names = "all cli cluster examples langgraph lsp metrics rx starlette test watch"
    assert sorted(EXTRAS) == names.split()


def test_the_extra_all_has_all_extras_for_users() -> None:
    (everything,) = EXTRAS["all"]
    assert everything == f"handfast[{','.join(e for e in EXTRAS if e not in ('all', 'examples'))}]"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_installation_line_names_extras_that_exist(path: Path) -> None:
    lines = INSTALL_LINE.findall(path.read_text())
    named = {extra for _, extras in lines for extra in extras.split(",") if extra}
    assert named <= set(EXTRAS)


def test_the_readme_installs_from_a_clone_and_says_what_holds_once_it_is_published() -> None:
    readme = (ROOT / "README.md").read_text()
    assert '```sh\npip install ".[cli,test]" ' in readme
    assert 'once it is on PyPI: pip install "handfast[cli,test]"\n' in readme


def test_installation_lines_are_recognised() -> None:
    text = """pip install .; pip install ".[cli,test]"; pip install -q -e '.[rx]'; pip install handfast[all]
    pip install ./other; pip install "nox[uv]" """
    assert INSTALL_LINE.findall(text) == [
        (".", ""),
        (".", "cli,test"),
        (".", "rx"),
        ("handfast", "all"),
    ]


def test_it_is_typed() -> None:
    assert (files("handfast") / "py.typed").is_file()


def test_the_version_is_the_same_everywhere() -> None:
    assert handfast.__version__ == "0.2.0"
    changelog = (ROOT / "CHANGELOG.md").read_text()
    newest = re.search(r"^## (?:\[Unreleased\] )?(\S+)$", changelog, re.MULTILINE)
    assert newest is not None
    assert newest[1] == handfast.__version__
    assert f"Version {handfast.__version__} " in (ROOT / "README.md").read_text()
    assert f"rev: v{handfast.__version__}\n" in (ROOT / "docs" / "guides" / "check.md").read_text()


def test_the_classifiers_name_the_python_versions_that_nox_tests() -> None:
    prefix = "Programming Language :: Python :: 3."
    classifiers = PYPROJECT["project"]["classifiers"]
    named = [f"3.{each.removeprefix(prefix)}" for each in classifiers if each.startswith(prefix)]
    tested = re.search(r"^PYTHONS = \[(.*)\]$", (ROOT / "noxfile.py").read_text(), re.MULTILINE)
    assert tested is not None
    assert named == re.findall(r'"([\d.]+)"', tested[1])
    assert named == [f"{major}.{minor}" for major, minor in TESTED_PYTHONS]


def test_importing_handfast_imports_the_standard_library_only() -> None:
    """Also if the libraries of the extras are installed."""
    program = (
        "import sys; before = set(sys.modules); import handfast, handfast.catalogue; "
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=30
    )
    # Since 3.15 a distributor of Python may add this module; `traceback` imports it.
    standard = {*sys.stdlib_module_names, "_missing_stdlib_info"}
    assert set(result.stdout.split()) - standard == {"handfast"}
