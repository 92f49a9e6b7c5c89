"""Whether a program is one of a language model, which a runner generates text with."""

from __future__ import annotations

from schema.program import ProgramFile

_RUN = frozenset(("forward", "decode"))
_OF_EMBEDDINGS = frozenset(("token_embedding", "text_decoder"))  # of text, images and audio
# constant methods by which a runner knows the model
_FACTS = frozenset(("get_max_seq_len", "get_max_context_len", "get_vocab_size"))


def no_language_model(program: ProgramFile) -> str:
    """Return why a program is not one of a language model, empty if it is."""
    names = {plan.name for plan in program.plans}
    if not names & _RUN and not names >= _OF_EMBEDDINGS:
        return "not a language model: the program has neither forward nor decode"
    return "" if names & _FACTS else "not a language model: the program has no get_max_seq_len"
