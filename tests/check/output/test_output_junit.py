"""JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from handfast._check.finding import Finding, Span
from handfast._check.output.junit import junit
from handfast._check.report import Report
from tests.check.sample_report import REPORT


def test_a_suite_for_each_file_and_a_failure_for_each_finding() -> None:
    root = ElementTree.fromstring(junit(REPORT))
    assert (root.attrib["tests"], root.attrib["failures"]) == ("3", "3")
    assert [each.attrib["name"] for each in root] == ["src/bot.py", "src/broken.py"]
    failure = root[0][1][0]
    assert failure.attrib["message"] == "The session is cleared while the task still reads it"
    assert (failure.text or "").split("\n") == [
        "src/bot.py:6:9: HF301 The session is cleared while the task still reads it",
        "src/bot.py:3: the task is created here",
        "src/other bot.py:1: and read here",
        "more: handfast rule HF301",
    ]


def test_no_findings_are_one_passed_test() -> None:
    root = ElementTree.fromstring(junit(Report()))
    assert (root.attrib["tests"], root.attrib["failures"]) == ("1", "0")
    assert len(root[0]) == 1


def test_any_name_and_message_is_valid_xml() -> None:
    odd = "\x00\x1b\udcff\ufffe<&>\"']]>\n"
    finding = Finding("HF101", odd, Span(odd, 1, 1, 1, 2))
    [case] = ElementTree.fromstring(junit(Report((finding,))))[0]
    assert "\\x00\\x1b\\udcff\\ufffe<&>\"']]>\\n" in case.attrib["classname"]
