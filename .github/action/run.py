"""The last step of the GitHub Action (action.yml): runs `handfast check` or `handfast audit`.

The inputs are in the variables `INPUT_*`. Findings are printed as annotations, and with
`INPUT_SARIF=true` written to a SARIF file. The exit status is that of the command.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import IO
from urllib.parse import unquote

from handfast._github import annotation

SARIF = "handfast.sarif"


def main() -> int:
    """Run the command that the inputs name."""
    commands = {"check": check, "audit": audit}
    command = os.environ["INPUT_COMMAND"]
    if command not in commands:
        sys.stderr.write(f"handfast: the input `command` is check or audit, not {command!r}\n")
        return 2
    path = os.environ["INPUT_PATH"]
    sarif = Path(os.environ["RUNNER_TEMP"], SARIF)
    sarif.unlink(missing_ok=True)  # of an earlier step
    status = commands[command](path, shlex.split(os.environ["INPUT_ARGUMENTS"]), sarif)
    if sarif.exists() and os.environ["INPUT_SARIF"] == "true":
        with open(os.environ["GITHUB_OUTPUT"], "a", encoding="utf-8") as output:
            output.write(f"sarif={sarif}\n")
    return status


def check(path: str, arguments: list[str], sarif: Path) -> int:
    """Run `check`: once for the annotations, and from the cache for the SARIF file."""
    command = ("check", path, *arguments)
    status = handfast(*command, "--output-format", "github")
    if status < 2 and os.environ["INPUT_SARIF"] == "true":
        with sarif.open("wb") as file:
            handfast(*command, "--output-format", "sarif", stdout=file)
    return status


def audit(path: str, arguments: list[str], sarif: Path) -> int:
    """Run `audit`, in the environment of the project, and annotate the lines of its report."""
    command = ["audit", path, "--minutes", os.environ["INPUT_MINUTES"], "--sarif", str(sarif)]
    if "VIRTUAL_ENV" not in os.environ and not any(
        Path(path, each).is_dir() for each in (".venv", "venv")
    ):
        # The default would be the Python of the action, which lacks the packages of the project.
        command += ["--python", shutil.which("python") or sys.executable]
    status = handfast(*command, *arguments)
    if sarif.exists():
        for each in json.loads(sarif.read_text(encoding="utf-8"))["runs"][0]["results"]:
            place = each["locations"][0]["physicalLocation"]
            where = {
                "file": unquote(place["artifactLocation"]["uri"]),
                "line": place["region"]["startLine"],
                "title": f"handfast ({each['ruleId']})",
            }
            sys.stdout.write(f"{annotation('error', where, each['message']['text'])}\n")
    return status


def handfast(*arguments: str, stdout: IO[bytes] | None = None) -> int:
    """Run a command of handfast; return its exit status."""
    sys.stdout.flush()
    return subprocess.call([sys.executable, "-m", "handfast", *arguments], stdout=stdout)


if __name__ == "__main__":
    sys.exit(main())
