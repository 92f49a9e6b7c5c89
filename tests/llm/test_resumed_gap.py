"""llm gap keeps the tokens it has read, and goes on with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from inspector.jobs.generating import LlmGapJob
from inspector.worker import llm_gap, token_rows
from inspector.worker.exporter import AnswerError
from inspector.worker.interrupting import StopSignal
from inspector.worker.tasks import Task
from tests.inspector.cli_runs import run
from tests.llm.configs import NANO

TEXT = "Once upon a time there were three mice. " * 4
LENGTHS = {"max_seq_length": 8, "max_context_length": 16}
TOKENS = 44  # parts of 16, 16 and 12


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> LlmGapJob:
    folder = tmp_path_factory.mktemp("model")
    params = {**NANO, "vocab_size": 256, "n_layer": 1, "block_size": 16}
    content = {"base": {"params": params}, "model": {"use_kv_cache": True}, "export": LENGTHS}
    (folder / "model.yaml").write_text(yaml.safe_dump(content))
    made = run("llm", "export", str(folder / "model.yaml"), "-o", str(folder / "out"))
    assert made.code == 0, made.err
    program, config = str(folder / "out/model.pte"), str(folder / "model.yaml")
    return LlmGapJob(program=program, config=config, text=TEXT, tokens=TOKENS)


def _work(job: LlmGapJob, after: int | None = None) -> tuple[dict[str, Any], int]:
    """Return the report, and how many tokens were read; stop after so many."""
    stop, read = StopSignal(), 0

    def hear(kind: str, **content: Any) -> None:
        nonlocal read
        if kind == "counted":
            read += 1
            if content["done"] == after:
                stop.ask()

    return llm_gap.work(job, Task(Path(job.program).parent, hear, stop=stop)), read


@pytest.mark.parametrize(("after", "again"), [(5, 44), (16, 28), (37, 12)])
def test_an_interrupted_comparison_goes_on_behind_its_whole_parts(
    tmp_path: Path, job: LlmGapJob, after: int, again: int
) -> None:
    whole, _ = _work(job)
    kept = replace(job, rows=str(tmp_path / "rows.jsonl"))
    assert _work(kept, after)[0]["row_count"] == after
    with (tmp_path / "rows.jsonl").open("ab") as stream:
        stream.write(b'{"position": 3, "to')  # cut by a crash
    assert _work(kept) == (whole, again)
    assert _work(kept) == (whole, 0)
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines[1:]] == whole["rows"]


def test_more_tokens_go_on_behind_the_parts_that_stay_as_they_are(
    tmp_path: Path, job: LlmGapJob
) -> None:
    kept = replace(job, rows=str(tmp_path / "rows.jsonl"))
    _work(replace(kept, tokens=20))
    assert _work(kept) == (_work(job)[0], TOKENS - 16)


def test_what_changed_starts_over_and_says_so(tmp_path: Path, job: LlmGapJob) -> None:
    kept = replace(job, rows=str(tmp_path / "rows.jsonl"))
    _work(kept)
    found, read = _work(replace(kept, settings="base.seed=4"))
    assert found["restart"] == "starts over: the float model changed since the last call"
    assert read == TOKENS
    (tmp_path / "rows.jsonl").write_text('{"another": 1}\n')
    with pytest.raises(AnswerError, match="has no tokens of this comparison; --force starts over"):
        _work(kept)


def test_a_report_of_a_long_text_has_its_first_tokens(
    tmp_path: Path, job: LlmGapJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, _ = _work(job)
    monkeypatch.setattr(token_rows, "MOST_ROWS", 10)
    monkeypatch.setattr(llm_gap, "MOST_ROWS", 10)
    found, _ = _work(replace(job, rows=str(tmp_path / "rows.jsonl")))
    assert found == {**whole, "rows": whole["rows"][:10], "tokens": whole["tokens"][:10]}
    assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 1 + TOKENS


def test_the_verb_keeps_the_tokens_of_each_model(tmp_path: Path, job: LlmGapJob) -> None:
    folder, text = tmp_path / "kept", tmp_path / "text.txt"
    text.write_text(TEXT)
    words = ("llm", "gap", job.program, job.program, "--text", str(text), "-o", str(folder))
    first, again = (run(*words, "--tokens", "20", "--format", "json") for _ in range(2))
    assert first.code == 0, first.err
    assert first.out == again.out
    assert sorted(one.name for one in folder.iterdir()) == ["tokens-1.jsonl", "tokens-2.jsonl"]
