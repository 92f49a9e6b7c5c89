"""Judgements as JUnit XML, which every continuous-integration server shows."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from inspector.gates.judging import Judgement

SUITE = "etscope gate"


def junit_text(judgements: Sequence[Judgement], subject: str) -> str:
    """Return a test suite with one case for each requirement.

    Args:
        judgements: what was judged
        subject: what the requirements are of, the class of all cases
    """
    failures = str(sum(not one.met for one in judgements))
    counts = {"tests": str(len(judgements)), "failures": failures, "errors": "0", "skipped": "0"}
    suites = Xml.Element("testsuites", {"name": SUITE, **counts})
    suite = Xml.SubElement(suites, "testsuite", {"name": SUITE, **counts})
    for one in judgements:
        name = {"classname": _text(subject), "name": _text(one.requirement.text)}
        case = Xml.SubElement(suite, "testcase", name)
        line = _text(f"{one.value_text()}{one.details()}")
        if one.met:
            Xml.SubElement(case, "system-out").text = line
        else:
            failure = {"type": "requirement", "message": _text(one.value_text())}
            Xml.SubElement(case, "failure", failure).text = line
    Xml.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(suites, "unicode")}\n'


def _text(text: str) -> str:
    """Return text without the characters that XML has no way to write."""
    return "".join(char if char.isprintable() else "�" for char in text)
