"""Images in a prompt: where they stand, and how many."""

from __future__ import annotations

from ragchat.llm.images import IMAGE_TOKENS, MAX_IMAGES, add_images, image_tokens, with_images
from ragchat.llm.types import Message

ASKED: Message = {"role": "user", "content": "What is this?"}
RESULT: Message = {"role": "tool", "tool_call_id": "1", "content": "[image/png, 3 bytes]"}
PART = {"type": "image_url", "image_url": {"url": "data:a"}}


def test_images_of_the_user_join_their_message() -> None:
    [message] = with_images([ASKED], {0: ["data:a"]})
    assert message == {"role": "user", "content": [{"type": "text", "text": "What is this?"}, PART]}


def test_images_of_tools_follow_the_results_in_a_message_of_the_user() -> None:
    asked, result, images = with_images([ASKED, RESULT], {1: ["data:a", "data:a"]})
    assert (asked, result) == (ASKED, RESULT)
    assert images["role"] == "user"
    assert images["content"][1:] == [PART, PART]


def test_without_images_the_messages_stay_as_they_are() -> None:
    assert with_images([ASKED, RESULT], {}) == [ASKED, RESULT]


def test_a_prompt_has_a_bounded_number_of_images() -> None:
    images: dict[int, list[str]] = {}
    add_images(images, 1, [])
    add_images(images, 3, ["data:a"] * (MAX_IMAGES - 1))
    add_images(images, 5, ["data:b", "data:c"])
    add_images(images, 7, ["data:d"])
    assert images == {3: ["data:a"] * (MAX_IMAGES - 1), 5: ["data:b"]}
    assert image_tokens(images) == MAX_IMAGES * IMAGE_TOKENS
