"""Requests for what documents say about a topic: only the topic is searched for."""

from __future__ import annotations

import time

import pytest

from ragchat.turn.topics import topic_of


@pytest.mark.parametrize(
    "request_",
    [
        "my notes on bees",
        "Can you find my notes about bees?",
        "where can I find information about bees?",
        "what did I write about bees?",
        "Have I ever written anything about bees?",
        "what do the documents say about bees",
        "what do the docs say on bees?",
        "is there anything in my notes on bees",
        "which of my notes are about bees?",
        "which files mention bees?",
        "In which file is bees mentioned?",
        "search my notes for bees",
        "is there anything about bees in my notes?",
        "tell me more about bees",
        "Meine Notizen zu bees",
        "Was habe ich über bees geschrieben?",
        "In welchem Dokument geht es um bees?",
        "mes notes sur bees",
        "qu'est-ce que j'ai écrit sur bees ?",
        "¿Qué dicen mis notas sobre bees?",
    ],
)
def test_a_request_for_what_documents_say_is_searched_by_its_topic(request_: str) -> None:
    assert topic_of(request_) == "bees"


@pytest.mark.parametrize(
    "question",
    [
        "what does the contract say about bees?",
        "who wrote about bees?",
        "when did I write about bees?",
        "which documents do I need for a visa?",
        "files on the server",
        "documents de voyage",
        "summarise my notes on bees",
        "what is in Notes on Nursing?",
        "what did I write about it?",
        "Could I give a talk about bees?",
        "can we write about bees?",
        "what about bees?",
        "what do we have on Monday?",
        "Was ist zu tun?",
    ],
)
def test_other_questions_are_searched_whole(question: str) -> None:
    assert topic_of(question) == question


def test_the_time_for_long_questions_is_bounded() -> None:
    started = time.perf_counter()
    for words in ("notes ", "my notes on ", "the ", "alles "):
        topic_of(100_000 * words)
        topic_of((100 * words)[:200])
    assert time.perf_counter() - started < 1
