"""The tests of the stock wheel, run on this project: `python -m tests.suites` (make suites)."""
