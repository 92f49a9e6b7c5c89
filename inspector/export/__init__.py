"""Exports of a session: anonymised copies, payloads, traces and graphs for other tools."""
