"""Shell completion, in a real bash; and that it imports only what it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from handfast.cli.check_options import option_names
from handfast.cli.explain import completions

SCRIPT = Path(sys.executable).with_name("handfast")
# What a user's ~/.bashrc has after `handfast --install-completion`; then what bash does at a Tab.
BASH = """
source <(_HANDFAST_COMPLETE=source_bash "$1")
shift
COMP_CWORD=$(($# - 1)) COMP_WORDS=("$@")
_handfast_completion "$1"
printf '%s\\n' "${COMPREPLY[@]}"
"""

bash = pytest.mark.skipif(
    shutil.which("bash") is None or not SCRIPT.exists(), reason="no bash, or no handfast script"
)


def completed(*words: str) -> list[str]:
    """The completions of the last word."""
    result = subprocess.run(
        ["bash", "-c", BASH, "bash", str(SCRIPT), str(SCRIPT), *words],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.stderr == ""
    return result.stdout.split()


@bash
def test_bash_completes_commands_options_and_codes() -> None:
    assert {"audit", "check", "explain", "explore", "stress"} <= set(completed(""))
    assert completed("audit", "--de") == ["--demo"]
    assert completed("check", "--sel") == ["--select"]
    assert completed("explain", "HF20") == [each for each in completions() if "HF20" in each]


def test_names_of_commands_are_completed_without_importing_them() -> None:
    program = (
        "import sys, atexit; sys.argv = ['handfast']\n"
        "atexit.register(lambda: print(*sorted(m for m in sys.modules if m.startswith('handfast'))))\n"
        "from handfast.cli import main; main()"
    )
    variables = {
        "_HANDFAST_COMPLETE": "complete_bash",
        "COMP_WORDS": "handfast ",
        "COMP_CWORD": "1",
    }
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **variables},
    )
    commands, imported = result.stdout.rsplit("\n", 2)[:2]
    assert "explore" in commands.split()
    assert "handfast.cli.app" in imported.split()
    assert not {"handfast.cli.audit", "handfast.cli.explore"} & set(imported.split())


def test_the_words_are_those_of_the_commands() -> None:
    assert {"--fix", "--output-format", "--help"} <= set(option_names())
    assert {"HF101", "task-dropped"} <= set(completions())
