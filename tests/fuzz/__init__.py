"""Damaged files by the thousand: nothing but FormatError, in bounded time and memory."""
