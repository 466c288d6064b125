"""Sizes in tokens, held against the one tokenizer that is at hand: wordllama's, a vocabulary of 32,000."""

from __future__ import annotations

import json
from importlib import resources

import pytest
from tokenizers import Tokenizer

from ragchat.llm import tokens

TEXTS = {
    "English": "The Normans were the people who in the 10th and 11th centuries gave their name to "
    "Normandy, a region in France; they were descended from Norse raiders and pirates.",
    "German": "Die Verteidigung der Panthers gab nur 308 Punkte ab und belegte den sechsten Platz in der "
    "Liga; außerdem verzeichneten sie vier Auswahlen für den Pro Bowl.",
    "Chinese": "黑豹队的防守只丢了 308分，在联赛中排名第六，同时也以 24 次拦截领先联盟。",
    "code": 'def main(argv: list[str]) -> int:\n    for i in range(10):\n        print(f"{i}: {argv[i]}")\n',
    "Russian": "Норманны дали своё имя Нормандии, области во Франции.",
    "JSON": json.dumps({"id": 12, "tags": ["a", "b"], "text": "x y z", "score": 0.25}),
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    folder = resources.files("wordllama").joinpath("tokenizers")
    text = folder.joinpath("l2_supercat_tokenizer_config.json").read_text(encoding="utf-8")
    return Tokenizer.from_str(text)


@pytest.mark.parametrize("name", TEXTS)
def test_the_upper_estimate_is_above_a_small_vocabulary_and_not_absurdly(
    name: str, tokenizer: Tokenizer
) -> None:
    counted = len(tokenizer.encode(TEXTS[name], add_special_tokens=False).ids)
    assert counted <= tokens.at_most(TEXTS[name]) <= 3 * counted


@pytest.mark.parametrize("name", TEXTS)
def test_the_lower_estimate_is_well_below_it(name: str, tokenizer: Tokenizer) -> None:
    counted = len(tokenizer.encode(TEXTS[name], add_special_tokens=False).ids)
    assert tokens.at_least(TEXTS[name]) <= 0.8 * counted


@pytest.mark.parametrize("name", TEXTS)
def test_the_shown_estimate_lies_between_both(name: str) -> None:
    messages = [{"role": "user", "content": TEXTS[name]}]
    least, most = tokens.prompt_at_least(messages), tokens.prompt_at_most(messages)
    assert least <= tokens.about(messages) <= most


def test_white_space_alone_raises_no_alarm() -> None:
    assert tokens.at_least(" " * 10_000) == 0


def test_messages_are_counted_with_their_frames_and_their_tool_calls() -> None:
    plain = [{"role": "user", "content": "abc"}]
    assert tokens.prompt_at_most(plain) == 1 + tokens.MESSAGE_TOKENS
    called = [{"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": "x" * 300}}]}]
    assert tokens.prompt_at_most(called) > 100
