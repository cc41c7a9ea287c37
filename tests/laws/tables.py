"""Where each format keeps logprobs, written down again by hand from the servers' own descriptions.

Law: nothing here comes from the proxy. A slot that is missing here or there makes the oracle and the proxy disagree.

A path names members from the payload's root, `[]` each element of an array. The kind says what stands there:
`objects` a list of objects with alternatives in lists below, or one by itself, `arrays` an object of parallel arrays,
`by-id` a list of null or objects by token id, `tuples` and `number` a member of the object at the path, `bare` one for
which null says that nobody asked, `by-text` one object of logprobs by token text, `runs` Cohere's stretches of text.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """One slot."""

    path: str
    kind: str
    member: str = ""
    """Of the object at `path`: the one that holds the logprobs."""
    inserted: str = ""
    when: tuple[str | None, ...] = ()
    """Values of the root's `type` for which the slot exists (None: it has none); empty: always."""
    names: tuple[tuple[str, str], ...] = (("logprob", "probability"),)
    """(member, inserted member) of a token's object."""
    below: str = "top_logprobs"
    """Member of a token's object with its alternatives; empty: they do not stand there."""


FIREWORKS = (("logprob", "probability"), ("sampling_logprob", "sampling_probability"))
GEMINI = (("logProbability", "probability"),)
COHERE = (("likelihood", "probability"),)

_RAW_OUTPUT = "choices.[].raw_output.completion_logprobs.content"
_TOGETHER_PROMPT = Row("prompt.[].logprobs", "arrays")

TABLES: dict[str, tuple[Row, ...]] = {
    "openai-chat": (
        Row("choices.[].logprobs.content", "objects", names=FIREWORKS),
        Row("choices.[].logprobs.refusal", "objects", names=FIREWORKS),
        Row("choices.[].logprobs.reasoning_content", "objects", names=FIREWORKS),  # DeepSeek
        Row("choices.[].logprobs", "arrays"),  # Together, Fireworks
        Row("choices.[]", "bare", "logprobs", "probability"),  # Together's stream
        Row("choices.[]", "by-text", "top_logprobs", "top_probabilities"),
        Row("choices.[]", "tuples", "output_token_logprobs", "output_token_probabilities"),  # LMDeploy
        Row(_RAW_OUTPUT, "objects", names=FIREWORKS),
        _TOGETHER_PROMPT,
        Row("prompt_logprobs", "by-id"),  # vLLM
    ),
    "openai-completions": (
        Row("choices.[].logprobs", "arrays"),
        Row("choices.[].logprobs.content", "objects", names=FIREWORKS),  # llama.cpp, Ollama, Fireworks
        Row("choices.[].prompt_logprobs", "by-id"),  # vLLM
        Row("token", "number", "logprob", "probability"),  # Together's stream
        Row(_RAW_OUTPUT, "objects", names=FIREWORKS),
        _TOGETHER_PROMPT,
    ),
    "openai-responses": (
        Row("logprobs", "objects", when=("response.output_text.delta", "response.output_text.done")),
        Row("part.logprobs", "objects"),
        Row("item.content.[].logprobs", "objects"),
        Row("response.output.[].content.[].logprobs", "objects"),
        Row("output.[].content.[].logprobs", "objects"),
        Row("data.[].content.[].logprobs", "objects"),  # the items of a conversation
    ),
    "openai-transcriptions": (
        Row("logprobs", "objects", when=("transcript.text.delta", "transcript.text.done", None)),
        Row("segments.[]", "number", "avg_logprob", "avg_probability"),  # Whisper
    ),
    "openai-realtime": (
        Row(
            "logprobs",
            "objects",
            when=(
                "conversation.item.input_audio_transcription.delta",
                "conversation.item.input_audio_transcription.completed",
            ),
        ),
    ),
    "llamacpp-completion": (Row("completion_probabilities", "objects"),),
    "vllm-generate": (Row("choices.[].logprobs.content", "objects"), Row("prompt_logprobs", "by-id")),
    "sglang-generate": tuple(
        Row("meta_info", "tuples", f"{side}_{kind}_logprobs", f"{side}_{kind}_probabilities")
        for side in ("input", "output")
        for kind in ("token", "top", "token_ids")
    ),
    "lmdeploy-generate": (Row("meta_info", "tuples", "output_token_logprobs", "output_token_probabilities"),),
    "tgi": tuple(
        Row(path, "objects", below="")
        for path in (
            "token",
            "top_tokens",
            "details.prefill",
            "details.tokens",
            "details.top_tokens",
            "details.best_of_sequences.[].prefill",
            "details.best_of_sequences.[].tokens",
            "details.best_of_sequences.[].top_tokens",
        )
    ),
    "gemini": (
        Row("candidates.[].logprobsResult.chosenCandidates", "objects", names=GEMINI, below=""),
        Row("candidates.[].logprobsResult.topCandidates.[].candidates", "objects", names=GEMINI, below=""),
        Row("candidates.[]", "number", "avgLogprobs", "avgProbability"),
    ),
    "ollama": (Row("logprobs", "objects"),),
    "cohere-chat": (Row("logprobs", "runs"),),
    "cohere-generate": (
        Row("generations.[]", "number", "likelihood", "probability"),
        Row("generations.[].token_likelihoods", "objects", names=COHERE, below=""),
    ),
}

INSERTED = frozenset(
    {name for rows in TABLES.values() for row in rows for _, name in row.names}
    | {"token_probabilities", "top_probabilities", "probabilities"}
    | {row.inserted for rows in TABLES.values() for row in rows if row.inserted}
)
"""Every name that may be inserted anywhere."""
