"""Which clients are tried, at which API, with which recorded answers: the rows of the README's table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
NODE = HERE.parent / "node"
OPENAI = {
    "chat": ("openai-chat/openai-chat", "openai-chat/openai-chat-stream"),
    "completions": ("openai-completions/openai-completions-echo", "openai-completions/openai-completions"),
    "responses": ("openai-responses/openai-responses", "openai-responses/openai-responses-stream"),
    "transcriptions": (
        "openai-transcriptions/openai-transcription",
        "openai-transcriptions/openai-transcription-stream",
    ),
}


@dataclass(frozen=True)
class Client:
    """One client; `captures`: for each API the recorded answer, whole and streamed."""

    name: str
    script: Path
    captures: dict[str, tuple[str, str]]
    environment: str = "clients"
    """`tests`: the environment of the tests; `clients`: that of other people's clients; `node`."""
    keeps: bool = True
    """Its objects keep members that they do not know."""
    serves_llamacpp: bool = False
    """llama.cpp's server speaks its API with logprobs, in chat."""

    @property
    def id(self) -> str:
        return f"{self.script.stem}-{self.environment}"


CLIENTS = (
    Client("`openai` for Python", HERE / "with_openai.py", OPENAI, "tests", serves_llamacpp=True),
    Client("`openai` for Python", HERE / "with_openai.py", OPENAI, serves_llamacpp=True),
    Client("`openai` for Node", NODE / "with_openai.mjs", OPENAI, "node", serves_llamacpp=True),
    Client(
        "LangChain (`langchain-openai`)",
        HERE / "with_langchain.py",
        {"chat": OPENAI["chat"]},
        serves_llamacpp=True,
    ),
    Client(
        "LlamaIndex (`llama-index-llms-openai-like`)",
        HERE / "with_llama_index.py",
        {"chat": OPENAI["chat"]},
        serves_llamacpp=True,
    ),
    Client("Vercel's `ai`", NODE / "with_ai.mjs", {"chat": OPENAI["chat"]}, "node", serves_llamacpp=True),
    Client(
        "`cohere`",
        HERE / "with_cohere.py",
        {"chat (v2)": ("cohere-chat/cohere-v2-chat", "cohere-chat/cohere-v2-chat-stream")},
    ),
    Client(
        "`ollama`",
        HERE / "with_ollama.py",
        {
            "chat": ("ollama/ollama-chat", "ollama/ollama-chat-stream"),
            "generate": ("ollama/ollama-generate-whole", "ollama/ollama-generate"),
        },
        keeps=False,
    ),
    Client(
        "`google-genai`",
        HERE / "with_google_genai.py",
        {"generateContent": ("gemini/gemini-generate", "gemini/gemini-stream-crlf")},
        keeps=False,
    ),
)
