"""Where each format keeps logprobs, written down again by hand from the servers' own descriptions.

Law: nothing here comes from the proxy. A slot that is missing here or there makes the oracle and the proxy disagree.

A path names members from the payload's root, `[]` each element of an array. The kind says what stands there:
`objects` a list of objects with alternatives in lists below, `arrays` an object of parallel arrays, `by-id` a list of
null or objects by token id, `tuples` and `number` a member of the object at the path, `by-text` one object of
logprobs by token text.
"""

from typing import NamedTuple


class Row(NamedTuple):
    """One slot."""

    path: str
    kind: str
    member: str = ""
    """Of the object at `path`: the one that holds the logprobs."""
    inserted: str = ""
    when: tuple[str, ...] = ()
    """Values of the root's `type` for which the slot exists; empty: always."""


OBJECT = (("logprob", "probability"), ("sampling_logprob", "sampling_probability"))
"""(member, inserted member) of a token's object: OpenAI, and Fireworks' second one."""
GEMINI = (("logProbability", "probability"),)

_FIREWORKS = Row("choices.[].raw_output.completion_logprobs.content", "objects")
_TOGETHER_PROMPT = Row("prompt.[].logprobs", "arrays")

TABLES: dict[str, tuple[Row, ...]] = {
    "openai-chat": (
        Row("choices.[].logprobs.content", "objects"),
        Row("choices.[].logprobs.refusal", "objects"),
        Row("choices.[].logprobs.reasoning_content", "objects"),  # DeepSeek
        Row("choices.[].logprobs", "arrays"),  # Together, Fireworks
        Row("choices.[]", "number", "logprobs", "probability"),  # Together's stream
        Row("choices.[]", "by-text", "top_logprobs", "top_probabilities"),
        Row("choices.[]", "tuples", "output_token_logprobs", "output_token_probabilities"),  # LMDeploy
        _FIREWORKS,
        _TOGETHER_PROMPT,
        Row("prompt_logprobs", "by-id"),  # vLLM
    ),
    "openai-completions": (
        Row("choices.[].logprobs", "arrays"),
        Row("choices.[].logprobs.content", "objects"),  # llama.cpp, Ollama
        Row("choices.[].prompt_logprobs", "by-id"),  # vLLM
        Row("token", "number", "logprob", "probability"),  # Together's stream
        _FIREWORKS,
        _TOGETHER_PROMPT,
    ),
    "openai-responses": (
        Row("logprobs", "objects", when=("response.output_text.delta", "response.output_text.done")),
        Row("part.logprobs", "objects"),
        Row("item.content.[].logprobs", "objects"),
        Row("response.output.[].content.[].logprobs", "objects"),
        Row("output.[].content.[].logprobs", "objects"),
    ),
    "sglang-generate": tuple(
        Row("meta_info", "tuples", f"{side}_{kind}_logprobs", f"{side}_{kind}_probabilities")
        for side in ("input", "output")
        for kind in ("token", "top", "token_ids")
    ),
    "lmdeploy-generate": (Row("meta_info", "tuples", "output_token_logprobs", "output_token_probabilities"),),
    "gemini": (
        Row("candidates.[].logprobsResult.chosenCandidates", "objects"),
        Row("candidates.[].logprobsResult.topCandidates.[].candidates", "objects"),
        Row("candidates.[]", "number", "avgLogprobs", "avgProbability"),
    ),
    "ollama": (Row("logprobs", "objects"),),
}

INSERTED = frozenset(
    {name for _, name in OBJECT + GEMINI}
    | {"token_probabilities", "top_probabilities"}
    | {row.inserted for rows in TABLES.values() for row in rows if row.inserted}
)
"""Every name that may be inserted anywhere."""
