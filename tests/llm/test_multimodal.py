"""Programs with encoders: text, images and audio in their order, the same tokens as eager."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim, export

from compiler import to_edge_transform_and_lower
from runtime import ExecutionError
from runtime.llm import Audio, GenerationConfig, Image, MultimodalRunner
from tests.inspector.cli_runs import run

WIDTH, CONTEXT, LONGEST = 16, 40, 8
FIVE = GenerationConfig(max_new_tokens=5)
CONSTANTS = {"get_max_seq_len": LONGEST, "get_max_context_len": CONTEXT, "get_vocab_size": 256}


class Decoder(nn.Module):
    """Attends to a cache of embeddings, so that order and positions count."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(CONTEXT, WIDTH))
        self.query = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, 256)
        self.place = nn.Embedding(CONTEXT, WIDTH)

    def forward(self, embeddings: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(embeddings.shape[1]) + start
        given = embeddings[0] + self.place(positions)
        self.cache.index_copy_(0, positions, given)
        scores = self.query(given) @ self.cache.t()
        allowed = torch.arange(CONTEXT) <= positions.unsqueeze(1)
        shares = torch.softmax(scores.masked_fill(allowed.logical_not(), -1e9), -1)
        return self.head(shares @ self.cache + given)[-1:]


class Encoder(nn.Module):
    """Patches of an image, or frames of audio, as embeddings."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self.linear = size, nn.Linear(size, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x.reshape(1, -1, self.size))


class Whole:
    """The modules of a program, run by torch."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.modules: dict[str, nn.Module] = {
            "token_embedding": nn.Embedding(256, WIDTH),
            "text_decoder": Decoder(),
            "vision_encoder": Encoder(12),
            "audio_encoder": Encoder(5),
        }

    def generated(self, parts: Sequence[object], count: int) -> list[int]:
        """Return the likeliest tokens behind parts."""
        self.modules["text_decoder"].cache.zero_()  # type: ignore[operator, union-attr]
        place, found = 0, list[int]()
        logits = torch.empty(0)
        queue: list[torch.Tensor] = [self._embedded(one) for one in parts]
        while len(found) < count:
            for part in queue:
                logits = self.modules["text_decoder"](part, torch.tensor([place]))
                place += part.shape[1]
            found.append(int(logits.argmax()))
            queue = [self.modules["token_embedding"](torch.tensor([[found[-1]]]))]
        return found

    def _embedded(self, part: object) -> torch.Tensor:
        if isinstance(part, Image):
            return self.modules["vision_encoder"](part.pixels)
        if isinstance(part, Audio):
            return self.modules["audio_encoder"](part.features)
        tokens = part if isinstance(part, list) else list(str(part).encode())
        return self.modules["token_embedding"](torch.tensor([tokens]))


@pytest.fixture(scope="module")
def whole() -> Whole:
    return Whole()


@pytest.fixture(scope="module")
def program(whole: Whole, tmp_path_factory: pytest.TempPathFactory) -> Path:
    count, start = Dim("count", max=LONGEST), torch.zeros(1, dtype=torch.int64)
    inputs = {
        "token_embedding": ((torch.zeros(1, 3, dtype=torch.int64),), ({1: count},)),
        "text_decoder": ((torch.zeros(1, 3, WIDTH), start), ({1: count}, None)),
        "vision_encoder": ((torch.zeros(1, 3, 4, 4),), None),
        "audio_encoder": ((torch.zeros(1, 5, 4),), None),
    }
    programs = {
        name: export(whole.modules[name], given, dynamic_shapes=shapes)
        for name, (given, shapes) in inputs.items()
    }
    path = tmp_path_factory.mktemp("seeing") / "model.pte"
    edge = to_edge_transform_and_lower(programs, constant_methods=dict(CONSTANTS))
    path.write_bytes(edge.to_executorch().buffer)
    return path


IMAGE = Image(torch.linspace(-1, 1, 48).reshape(1, 3, 4, 4))
SOUND = Audio(torch.linspace(0, 2, 20).reshape(1, 5, 4))


@pytest.mark.parametrize(
    "parts",
    [
        ["What?"],
        [IMAGE, "What?"],
        ["See: ", IMAGE, " and hear: ", SOUND, "What?"],
        [SOUND, IMAGE, IMAGE, "?"],
    ],
    ids=["text", "image", "all", "twice"],
)
def test_tokens_are_those_of_eager(program: Path, whole: Whole, parts: list[str | Image]) -> None:
    runner = MultimodalRunner(program, "bytes")
    stats = runner.generate(parts, FIVE)
    with torch.no_grad():
        assert stats.tokens == whole.generated(parts, 5)
    lengths = [4 if not isinstance(one, str) else len(one) for one in parts]
    assert stats.prompt_tokens == sum(lengths)
    assert sum(one.tokens for one in stats.calls) == sum(lengths) + 4
    assert max(one.tokens for one in stats.calls) <= LONGEST
    assert stats.first_token_ms >= stats.prefill_ms > 0


def test_order_counts_and_a_conversation_goes_on(program: Path, whole: Whole) -> None:
    runner = MultimodalRunner(program, "bytes")
    first = runner.generate([IMAGE, "ab"], FIVE).tokens
    second = runner.generate([SOUND, "c"], FIVE).tokens
    with torch.no_grad():
        assert second == whole.generated([IMAGE, "ab", first, SOUND, "c"], 5)
    runner.reset()
    assert runner.generate([IMAGE, "ab"], FIVE).tokens == first


@pytest.mark.slow
def test_the_verb_takes_parts_in_the_order_of_its_options(
    program: Path, whole: Whole, tmp_path: Path
) -> None:
    torch.save(IMAGE.pixels, tmp_path / "image.pt")
    np.save(tmp_path / "sound.npy", SOUND.features.numpy())
    image, sound = ("--image", tmp_path / "image.pt"), ("--audio", tmp_path / "sound.npy")
    model = ("llm", "run", program, "--max-new-tokens", "5")
    words = (*model, "--prompt", "See: ", *image, *sound, "--prompt", "What?")
    done = run(*map(str, words), "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)["data"]
    with torch.no_grad():
        assert found["tokens"] == whole.generated(["See: ", IMAGE, SOUND, "What?"], 5)
        alone = whole.generated(["What?"], 5)
    assert found["parts"][0] == ["text", "See: "]
    done = run(*map(str, model), "--prompt", "What?", "--format", "json")
    assert json.loads(done.out)["data"]["tokens"] == alone, done.err
    for more, sentence in (
        (image, "a prompt ends with text"),
        ((*image, "--prompt", "x", "--chat"), "--chat cannot be combined"),
        (("--prompt", "a", "--prompt", "b"), "--prompt is given more than once"),
        (("--image", tmp_path / "none.pt", "--prompt", "x"), "none.pt"),
    ):
        refused = run(*map(str, (*model, *more)))
        assert refused.code, refused
        assert sentence in refused.err


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ([IMAGE], "has to end with text"),
        ([], "has to end with text"),
        ([*[IMAGE] * 12, "x"], "4 positions at 40, the context 40"),
        ([Image(torch.zeros(1, 3, 5, 5)), "x"], "vision_encoder"),
    ],
)
def test_parts_that_do_not_fit_are_one_sentence(
    program: Path, parts: list[str | Image], sentence: str
) -> None:
    with pytest.raises(ExecutionError, match=sentence):
        MultimodalRunner(program, "bytes").generate(parts, FIVE)


def test_a_program_without_a_decoder_of_embeddings_is_named(tmp_path: Path) -> None:
    edge = to_edge_transform_and_lower(export(nn.Linear(2, 2), (torch.ones(1, 2),)))
    (tmp_path / "m.pte").write_bytes(edge.to_executorch().buffer)
    with pytest.raises(ExecutionError, match="no token_embedding and no text_decoder, but forward"):
        MultimodalRunner(tmp_path / "m.pte", "bytes").load()
