"""Judgements as JUnit XML, which every continuous-integration server shows."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from inspector.experiments.gates.judging import Judgement

SUITE = "etscope gate"


def junit_text(judgements: Sequence[Judgement], subject: str) -> str:
    """Return a test suite with one case for each requirement.

    Args:
        judgements: the judged programs
        subject: the subject of the requirements, the class of all cases
    """
    suites, suite = _suite(len(judgements), failures=sum(not one.met for one in judgements))
    for one in judgements:
        case = _case(suite, subject, one.requirement.text)
        line = _text(f"{one.value_text()}{one.details()}")
        if one.met:
            Xml.SubElement(case, "system-out").text = line
        else:
            failure = {"type": "requirement", "message": _text(one.value_text())}
            Xml.SubElement(case, "failure", failure).text = line
    return _document(suites)


def error_text(requirements: Sequence[str], subject: str, sentence: str) -> str:
    """Return a test suite in which each case is an error: nothing could be judged.

    Args:
        requirements: as given; of none there is one case for the gate itself
        subject: what they are of
        sentence: why not
    """
    names = list(requirements) or [SUITE]
    suites, suite = _suite(len(names), errors=len(names))
    for name in names:
        error = {"type": "error", "message": _text(sentence)}
        Xml.SubElement(_case(suite, subject, name), "error", error).text = _text(sentence)
    return _document(suites)


def _suite(tests: int, failures: int = 0, errors: int = 0) -> tuple[Xml.Element, Xml.Element]:
    counts = {"tests": tests, "failures": failures, "errors": errors, "skipped": 0}
    facts = {"name": SUITE, **{name: str(count) for name, count in counts.items()}}
    suites = Xml.Element("testsuites", facts)
    return suites, Xml.SubElement(suites, "testsuite", facts)


def _case(suite: Xml.Element, subject: str, name: str) -> Xml.Element:
    return Xml.SubElement(suite, "testcase", {"classname": _text(subject), "name": _text(name)})


def _document(suites: Xml.Element) -> str:
    Xml.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(suites, "unicode")}\n'


def _text(text: str) -> str:
    """Return text without the characters that XML has no way to write."""
    return "".join(char if char.isprintable() else "�" for char in text)
