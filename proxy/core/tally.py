"""Everything counted for one answer.

Law: a token is counted once, in the choice it belongs to, in the part of the answer it makes; what a protocol
repeats adds nothing.
"""

from array import array
from typing import Final

from proxy.core.alignment import Aligner, Placed, Texts, over_whole
from proxy.core.confidence import tell, tell_calls
from proxy.core.figures import Figures, status_of
from proxy.core.format import Counting, Format
from proxy.core.places import Sighting
from proxy.core.report import ChoiceReport, Report
from proxy.core.request import Ask
from proxy.core.tokens import Part, Token, text_bytes

_NOT_COUNTED: Final = frozenset({Part.PROMPT, Part.AGGREGATE})
_MAX_CHOICES: Final = 1024
_MAX_KEPT: Final = 1 << 15
"""Tokens of one answer that are kept for fields and labels."""
_SAME_NULL: Final = 1e300
"""Stands for null where logprobs are compared, since NaN equals nothing."""


class _Choice:
    """What is remembered of one choice while its answer passes."""

    __slots__ = (
        "aligner",
        "arguments",
        "counted",
        "kept",
        "kept_text",
        "kept_tools",
        "report",
        "text_length",
        "tools",
    )

    def __init__(self, key: tuple[object, ...], *, late: bool) -> None:
        self.report = ChoiceReport(key, Figures())
        self.kept: list[Token] | None = None
        """The answer's tokens, where fields or labels are wanted and they are not too many."""
        self.kept_text: list[str] = []
        """Their text."""
        self.kept_tools: list[Token] = []
        """The tokens of tool calls, likewise."""
        self.arguments: dict[int, list[str]] = {}
        """Pieces of each tool call's arguments, likewise."""
        self.tools = False
        """A tool was called."""
        self.aligner = Aligner(late=late)
        self.counted = array("d")
        """Logprobs counted so far, only where the format repeats tokens."""
        self.text_length = 0


class Tally:
    """Takes sightings, keeps the Report."""

    def __init__(self, fmt: Format, ask: Ask) -> None:
        self._ask = ask
        self._repeats = any(place.counting is Counting.SNAPSHOT for place in fmt.places)
        self._choices: dict[tuple[object, ...], _Choice] = {}
        self.report = Report(asked=ask.asked)

    def take(self, sighting: Sighting, *, whole: bool) -> None:
        """Count what one payload shows of one choice. `whole`: it is all there is of it."""
        if sighting.unknown:
            self.report.fail("unknown_shape", sighting.unknown)
        found = [(part, tokens) for part, tokens in sighting.tokens if part not in _NOT_COUNTED]
        if not (found or sighting.texts or sighting.ended):
            return
        choice = self._choices.get(sighting.key)
        if choice is None:
            if len(self._choices) >= _MAX_CHOICES:
                self.report.fail("too_many_choices")
                return
            choice = self._choices[sighting.key] = _Choice(sighting.key, late=sighting.place.late)
            self.report.choices.append(choice.report)
            wanted = self._ask.confidence
            if wanted is not None:
                choice.report.figures.threshold = wanted.threshold
                choice.kept = [] if wanted.keeps_tokens else None
        choice.report.ended = choice.report.ended or sighting.ended
        choice.report.text = choice.report.text or any(
            part is Part.ANSWER and text for part, text in sighting.texts
        )
        placed: Placed = []
        answer: list[Token] = []
        for part, tokens in found:
            if part is Part.ANSWER:
                answer += tokens
            else:
                placed += [(token, part) for token in tokens]
        if answer and len(answer) == len(sighting.alternatives):
            answer = [
                token._replace(alternatives=listed)
                for token, listed in zip(answer, sighting.alternatives, strict=True)
            ]
        answer, texts = self._without_prompt(*self._new(choice, sighting, answer))
        if placed:
            # Text whose tokens have a slot of their own (DeepSeek's reasoning) is none of the answer's tokens.
            texts = [(part, text) for part, text in texts if part not in {other for _, other in placed}]
        if sighting.blind and answer:
            choice.report.figures.aligned = False
            placed += [(token, Part.ANSWER) for token in answer]
        elif whole:
            parts, aligned = over_whole(answer, texts)
            choice.report.figures.aligned = choice.report.figures.aligned and aligned
            placed += parts
        else:
            placed += choice.aligner.feed(answer, texts)
        if self._ask.confidence is not None:
            choice.tools = choice.tools or any(part is Part.TOOL for part, _ in sighting.texts)
            if choice.kept is not None:
                for index, piece in sighting.arguments:
                    choice.arguments.setdefault(index, []).append(piece)
                choice.kept_text += [text for part, text in texts if part is Part.ANSWER and text]
        self._count(choice, placed)

    def confidence(self, key: tuple[object, ...]) -> dict[str, object] | None:
        """What is to be told of one choice, as far as it has come; None where nothing was seen of it or wanted."""
        choice, wanted = self._choices.get(key), self._ask.confidence
        if choice is None or wanted is None:
            return None
        self._settle(choice)
        reason = "tool_call" if choice.tools else "upstream_sent_none"
        if self._ask.refused:
            reason = "refused_by_upstream"
        told = tell(wanted, choice.report.figures, reason, choice.kept, text_bytes("".join(choice.kept_text)))
        if wanted.fields and choice.arguments:
            calls = [text_bytes("".join(pieces)) for _, pieces in sorted(choice.arguments.items())]
            told["tool_calls"] = tell_calls(choice.kept_tools, calls)
        choice.report.told = told
        return told

    def _settle(self, choice: _Choice) -> None:
        self._count(choice, choice.aligner.close())
        figures = choice.report.figures
        figures.aligned = figures.aligned and choice.aligner.aligned

    def close(self) -> Report:
        """The Report, with tokens that still wait for their text settled."""
        for choice in self._choices.values():
            self._settle(choice)
        return self.report

    def _new(self, choice: _Choice, sighting: Sighting, tokens: list[Token]) -> tuple[list[Token], Texts]:
        """The tokens not counted before, and the text that came with them."""
        texts: Texts = sighting.texts
        if not self._repeats:
            return tokens, texts
        if not tokens:
            if sighting.place.counting is Counting.SNAPSHOT:
                # A copy of the text without its tokens (vLLM's `response.output_text.done`) tells nothing new.
                return tokens, ()
            choice.text_length += _length(texts)
            return tokens, texts
        logprobs = array("d", (_SAME_NULL if t.logprob is None else t.logprob for t in tokens))
        if sighting.place.counting is Counting.SNAPSHOT:
            known = len(choice.counted)
            if logprobs[:known] == choice.counted[: len(logprobs)]:
                tokens, logprobs = tokens[known:], logprobs[known:]
                shown = choice.text_length
                texts = [(part, text[shown:] if text else text) for part, text in texts]
            else:
                self.report.fail("snapshot_mismatch")
        if tokens:
            choice.counted += logprobs
            choice.text_length += _length(texts)
        return tokens, texts

    def _without_prompt(self, tokens: list[Token], texts: Texts) -> tuple[list[Token], Texts]:
        """Leaves out what echoes the prompt. Where that cannot be known nothing is counted, with the reason."""
        if not self._ask.echo or not tokens:
            return tokens, texts
        length = self._ask.prompt_chars
        if length is None or any(token.offset is None or token.offset < 0 for token in tokens):
            self.report.fail("prompt_unknown")
            return [], texts
        start = tokens[0].offset or 0
        return (
            [token for token in tokens if token.offset is not None and token.offset >= length],
            [(part, text[max(0, length - start) :] if text else text) for part, text in texts],
        )

    def _keep(self, choice: _Choice, token: Token, part: Part) -> None:
        assert choice.kept is not None
        if part is Part.ANSWER:
            choice.kept.append(token)
        elif part is Part.TOOL:
            choice.kept_tools.append(token)
        if len(choice.kept) + len(choice.kept_tools) > _MAX_KEPT or len(choice.kept_text) > _MAX_KEPT:
            choice.kept, choice.kept_text, choice.kept_tools, choice.arguments = None, [], [], {}

    def _count(self, choice: _Choice, placed: Placed) -> None:
        counts, scored = self.report.status_counts, self.report.scored
        figures = choice.report.figures
        for token, part in placed:
            logprob = token.logprob
            if choice.kept is not None:
                self._keep(choice, token, part)
            if part is Part.ANSWER:
                name, status = "answer", figures.count(token)
                if figures.last_margin is not None:
                    self.report.margins.append(figures.last_margin)
            elif part is Part.REASONING:
                name, status = "reasoning", figures.reasoning.add(logprob)
            else:
                name, status = "other", status_of(logprob)
            counts[name, status] = counts.get((name, status), 0) + 1
            if status == "scored" and logprob is not None:
                scored.setdefault(name, array("d")).append(min(logprob, 0.0))


def _length(texts: Texts) -> int:
    """Characters of the answer's text."""
    return sum(len(text or "") for part, text in texts if part is Part.ANSWER)
