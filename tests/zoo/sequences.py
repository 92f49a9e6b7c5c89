"""Networks on words, sound and steps of time: of transformers, and small ones of the same kinds."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.zoo.vision import give_operators

Made = tuple[nn.Module, tuple[Tensor, ...]]


def words(count: int = 16, known: int = 200) -> Tensor:
    """Return the numbers of some words."""
    return torch.randint(0, known, (1, count))


class Field(nn.Module):
    """A network of transformers with one field of its result as a tensor."""

    def __init__(
        self, model: nn.Module, field: str, names: tuple[str, ...], **options: Any
    ) -> None:
        super().__init__()
        self.model = model
        self.field = field
        self.names = names
        self.options = options

    def forward(self, *inputs):
        named = dict(zip(self.names, inputs, strict=True))
        return getattr(self.model(**named, **self.options), self.field)


def of_transformers(model: str, config: dict[str, Any]) -> nn.Module:
    """Make a network of transformers."""
    give_operators()  # transformers imports torchvision
    import transformers

    family = model
    for suffix in ("LMHeadModel", "ForCausalLM", "ForConditionalGeneration", "Model"):
        family = family.removesuffix(suffix)
    made = getattr(transformers, f"{family}Config")(**config)
    return getattr(transformers, model)(made)


def encoder(model: str, **config: Any) -> Made:
    """Make a network that gives its last hidden state for words."""
    made = of_transformers(model, {"vocab_size": 256, **config})
    return Field(made, "last_hidden_state", ("input_ids",)), (words(),)


_DECODER = {
    "vocab_size": 256,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}


def decoder(model: str, count: int = 16, **config: Any) -> Made:
    """Make a network that gives logits for words."""
    made = of_transformers(model, config)
    known = min(200, made.config.vocab_size)
    return Field(made, "logits", ("input_ids",), use_cache=False), (words(count, known),)


def t5() -> Made:
    """Make a small T5 with the words that it has given so far."""
    sizes = {"d_model": 128, "d_kv": 32, "d_ff": 256, "num_heads": 4}
    config = {"vocab_size": 256, **sizes, "num_layers": 2, "num_decoder_layers": 2}
    made = of_transformers("T5ForConditionalGeneration", config)
    names = ("input_ids", "decoder_input_ids")
    return Field(made, "logits", names, use_cache=False), (words(), words(8))


def whisper() -> nn.Module:
    """Make a small Whisper."""
    sides = ("encoder", "decoder")
    config = {
        "vocab_size": 256,
        "d_model": 96,
        "num_mel_bins": 40,
        "max_source_positions": 50,
        "max_target_positions": 32,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 1,
        **{f"{side}_layers": 2 for side in sides},
        **{f"{side}_attention_heads": 3 for side in sides},
        **{f"{side}_ffn_dim": 192 for side in sides},
    }
    return of_transformers("WhisperModel", config)


def whisper_encoder() -> Made:
    """Make the half of a Whisper that listens."""
    names = ("input_features",)
    return Field(whisper().encoder, "last_hidden_state", names), (torch.randn(1, 40, 100),)


def whisper_decoder() -> Made:
    """Make the half of a Whisper that writes."""
    names = ("input_ids", "encoder_hidden_states")
    model = Field(whisper().decoder, "last_hidden_state", names, use_cache=False)
    return model, (words(8), torch.randn(1, 50, 96))


def wav2vec2() -> Made:
    """Make a small wav2vec 2.0."""
    config = {
        "vocab_size": 32,
        "hidden_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 192,
        "conv_dim": (32, 32, 32),
        "conv_stride": (5, 2, 2),
        "conv_kernel": (10, 3, 3),
        "num_conv_pos_embeddings": 16,
        "num_conv_pos_embedding_groups": 4,
    }
    made = of_transformers("Wav2Vec2Model", config)
    return Field(made, "last_hidden_state", ("input_values",)), (torch.randn(1, 1600),)


class Scan(nn.Module):
    """The selective scan of Mamba, written as a loop over the steps."""

    def __init__(self, width: int = 32, state: int = 8) -> None:
        super().__init__()
        self.split = nn.Linear(width, 2 * width)
        self.conv = nn.Conv1d(width, width, 4, padding=3, groups=width)
        self.select, self.step = nn.Linear(width, 2 * state + 1), nn.Linear(1, width)
        self.decay = nn.Parameter(torch.rand(width, state))
        self.skip = nn.Parameter(torch.ones(width))
        self.out = nn.Linear(width, width)
        self.state = state

    def forward(self, x):
        length = x.shape[1]
        u, gate = self.split(x).chunk(2, -1)
        u = functional.silu(self.conv(u.transpose(1, 2))[..., :length].transpose(1, 2))
        step, write, read = self.select(u).split([1, self.state, self.state], -1)
        step = functional.softplus(self.step(step)).unsqueeze(-1)
        decay = torch.exp(-step * self.decay)
        new = step * write.unsqueeze(2) * u.unsqueeze(-1)
        state, steps = torch.zeros_like(decay[:, 0]), []
        for at in range(length):
            state = decay[:, at] * state + new[:, at]
            steps.append((state * read[:, at].unsqueeze(1)).sum(-1))
        return self.out((torch.stack(steps, 1) + u * self.skip) * functional.silu(gate))


class Experts(nn.Module):
    """A mixture of experts: all are computed, each word takes its best two."""

    def __init__(self, width: int = 32, count: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 64), nn.SiLU(), nn.Linear(64, width))
            for _ in range(count)
        )

    def forward(self, x):
        weights, index = torch.topk(functional.softmax(self.gate(x), -1), 2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        outputs = torch.stack([expert(x) for expert in self.experts], -2)
        place = index.unsqueeze(-1).expand(-1, -1, -1, x.shape[-1])
        return (torch.gather(outputs, -2, place) * weights.unsqueeze(-1)).sum(-2)


class LSTM(nn.Module):
    """Two layers, both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 32, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 8)

    def forward(self, x):
        return self.out(self.lstm(x)[0])


class GRU(nn.Module):
    """One layer with its state in and out."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(16, 32, 1, batch_first=True)
        self.out = nn.Linear(32, 8)

    def forward(self, x, state):
        y, state = self.gru(x, state)
        return self.out(y), state


class Joiner(nn.Module):
    """The joiner of an RNN transducer."""

    def __init__(self) -> None:
        super().__init__()
        self.heard, self.said = nn.Linear(64, 64), nn.Linear(48, 64)
        self.out = nn.Linear(64, 29)

    def forward(self, heard, said):
        both = self.heard(heard)[:, :, None] + self.said(said)[:, None]
        return functional.log_softmax(self.out(torch.tanh(both)), -1)


_BERT = {"hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2}
_CLIP = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_MIXTRAL = {**_DECODER, "vocab_size": 128, "hidden_size": 64, "num_hidden_layers": 1}

SEQUENCES = {
    "bert_tiny": lambda: encoder("BertModel", **_BERT, intermediate_size=512),
    "distilbert": lambda: encoder(
        "DistilBertModel", dim=128, n_layers=2, n_heads=2, hidden_dim=512
    ),
    "albert": lambda: encoder("AlbertModel", **_BERT, embedding_size=64, intermediate_size=256),
    "clip_text": lambda: encoder("CLIPTextModel", **_CLIP),
    "gpt2": lambda: decoder(
        "GPT2LMHeadModel", vocab_size=256, n_embd=128, n_layer=3, n_head=4, n_positions=64
    ),
    "llama": lambda: decoder("LlamaForCausalLM", **_DECODER),
    "qwen2": lambda: decoder("Qwen2ForCausalLM", **_DECODER),
    "qwen3": lambda: decoder("Qwen3ForCausalLM", **_DECODER, head_dim=32),
    "mixtral": lambda: decoder("MixtralForCausalLM", 8, **_MIXTRAL, num_local_experts=4),
    "mamba_hf": lambda: decoder(
        "MambaForCausalLM", 8, vocab_size=128, hidden_size=64, num_hidden_layers=1, state_size=8
    ),
    "t5_small": t5,
    "whisper_enc": whisper_encoder,
    "whisper_dec": whisper_decoder,
    "wav2vec2": wav2vec2,
    "mamba_scan": lambda: (Scan(), (torch.randn(1, 12, 32),)),
    "moe": lambda: (Experts(), (torch.randn(1, 6, 32),)),
    "lstm": lambda: (LSTM(), (torch.randn(1, 10, 16),)),
    "gru": lambda: (GRU(), (torch.randn(1, 10, 16), torch.randn(1, 1, 32))),
    "rnnt_joiner": lambda: (Joiner(), (torch.randn(1, 10, 64), torch.randn(1, 5, 48))),
}
