"""A compile by the flow of a vendor, which the package runs in a process of its own."""

from __future__ import annotations

import sys
from typing import Any

from compiler.backends.vendors.create import unavailable
from inspector.recipes.compile_job import CompileJob
from inspector.recipes.job_checks import first_problem
from inspector.toolchain.backend_python import NoEnvironmentError, interpreter_of
from inspector.toolchain.child import Interpreter
from inspector.worker.exporter import AnswerError
from inspector.worker.tasks import Task
from inspector.worker.toolchain_compile import compile_with_executorch
from schema.vendors.table import Vendor


def compile_by_flow(job: CompileJob, vendor: Vendor, task: Task) -> dict[str, Any]:
    """Compile into the folder of a task; return the content of ``compile.json``.

    Args:
        job: whose only partitioner names a flow
        vendor: of the flow
        task: of the worker

    Raises: AnswerError where the vendor's packages are missing; as ``compile_with_executorch``
    """
    if problem := first_problem(job):
        raise AnswerError(problem)
    try:
        elsewhere = job.backend_python or not job.python
        python = interpreter_of(job.backend_python, job.partitioners[0]) if elsewhere else ""
        python = python or job.python
    except NoEnvironmentError as error:
        raise AnswerError(str(error)) from error
    missing = vendor.missing() if python in ("", sys.executable) else ""
    if missing:
        raise AnswerError(unavailable(vendor, missing))
    tool = Interpreter(python or sys.executable)
    try:
        return compile_with_executorch(job, task.folder, task.notify, tool)
    finally:
        tool.close()
