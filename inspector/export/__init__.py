"""What is written from a session: anonymised copies, payloads, traces and graphs of other tools."""
