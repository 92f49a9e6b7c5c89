"""A Dask cluster of one worker process, and a sweep on it; a program of its own."""

from __future__ import annotations

import sys

from distributed import LocalCluster

from inspector.cli import main


def sweep_on_cluster(arguments: list[str]) -> int:
    """Run ``etscope sweep`` with these arguments on a cluster of this machine."""
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None
    ) as cluster:
        return main(["sweep", *arguments, "--cluster", cluster.scheduler_address])


if __name__ == "__main__":  # its workers import this file
    sys.exit(sweep_on_cluster(sys.argv[1:]))
