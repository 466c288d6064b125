"""`/v1`: the API for other programs, in OpenAI's protocol and with the same turn as the page.

The messages of a request are its conversation. Nothing of it is saved unless the request sets `store`.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ragchat.answer import Answer
from ragchat.conversation import Attached, SaveMode
from ragchat.errors import RagChatError
from ragchat.llm.selection import ModelSelection
from ragchat.sanitize import sanitize
from ragchat.settings import ModelSettings
from ragchat.turn.events import Delta, Emit, Event, Reasoning, Shown
from ragchat.turn.types import Turn
from ragchat.web.errors import NoSuchModel, NotFound, openai_error, openai_response
from ragchat.web.programs import listed_models
from ragchat.web.protocol import (
    OWN_MODEL,
    SENDER,
    Asked,
    dialogue,
    finish_reason,
    open_webui_event,
    own_fields,
    url_citations,
    usage,
)
from ragchat.web.site import Site, body, json_response, route
from ragchat.web.streaming import Tell, following

log = logging.getLogger(__name__)

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


async def models(site: Site, _: Request) -> dict[str, object]:
    return {"object": "list", "data": [_model(OWN_MODEL), *map(_model, await _others(site))]}


async def model(site: Site, request: Request) -> dict[str, object]:
    name = request.path_params["name"]
    if name != OWN_MODEL and name not in await _others(site):
        raise NoSuchModel(name)
    return _model(name)


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": OWN_MODEL}


async def _others(site: Site) -> Sequence[str]:
    """The models that can be asked in addition to the configured one."""
    settings = site.settings.table("model", ModelSettings)
    async with aclosing(ModelSelection(settings, os.environ)) as selection:
        try:
            return await listed_models(selection)
        except RagChatError as error:  # A question gets it as its answer.
            log.warning("%s", error)
            return []


async def complete(site: Site, request: Request) -> Response:
    asked = await body(request, Asked)
    asked.check()
    told = dialogue(asked.messages)

    async def take(emit: Emit) -> Turn:
        async with site.programs.conversation(asked.model) as chat:
            chat.save_mode = SaveMode.ONE_SHOT if asked.store else SaveMode.NOTHING
            chat.new_session().turns = told.turns
            attached = Attached(untrusted=[SENDER], instructions=told.instructions)
            return await chat.ask(told.question, emit, attached=attached)

    return CompletionResponse(asked, take)


async def nothing(_: Site, request: Request) -> Response:
    raise NotFound(f"{request.method} {request.url.path}; there are /v1/models and /v1/chat/completions")


_route = partial(route, refusal=openai_response)
ROUTES = (
    _route("/v1/models", models),
    _route("/v1/models/{name:path}", model),
    _route("/v1/chat/completions", complete, "POST"),
    _route("/v1/{rest:path}", nothing, *_METHODS),
)


class CompletionResponse(Response):
    """Takes the turn while it is sent, in one piece or as events; a client that leaves stops it."""

    def __init__(self, asked: Asked, take: Callable[[Emit], Awaitable[Turn]]) -> None:
        super().__init__(
            media_type="text/event-stream" if asked.stream else "", headers={"cache-control": "no-store"}
        )
        del self.headers["content-length"]
        self._asked = asked
        self._take = take
        self._id, self._created = f"chatcmpl-{secrets.token_hex(12)}", int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = self._in_events if self._asked.stream else self._whole
        async with following(receive, work) as told:
            first = await told.receive()
            if isinstance(first, Exception):
                await openai_response(first)(scope, receive, send)
            elif not self._asked.stream:
                await json_response(first)(scope, receive, send)
            else:
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await send(_event(self._chunk({"role": "assistant", "content": ""})))
                await send(_event(first))
                async for part in told:
                    await send(_event(openai_error(part) if isinstance(part, Exception) else part))
                await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})

    async def _whole(self, tell: Tell) -> None:
        thoughts: list[str] = []

        def emit(event: Event) -> None:
            if isinstance(event, Reasoning):
                thoughts.append(sanitize(event.text))

        turn = await self._take(emit)
        text = sanitize(turn.answer.text)
        cited = url_citations(turn.answer, text)
        message = {"role": "assistant", "content": text, "refusal": None, "annotations": cited}
        if thoughts:
            message["reasoning_content"] = "".join(thoughts)
        choice = {"message": message, "finish_reason": finish_reason(turn)}
        fields = {"usage": usage(turn.answer), "ragchat": own_fields(turn)}
        tell(self._document("chat.completion", choice, **fields))

    async def _in_events(self, tell: Tell) -> None:
        texts: list[str] = []

        def emit(event: Event) -> None:
            match event:
                case Delta(text) | Shown(Answer(text=text)):
                    texts.append(sanitize(text))
                    tell(self._chunk({"content": texts[-1]}))
                case Reasoning(text):  # An extension of the API: DeepSeek, vLLM, Open WebUI.
                    tell(self._chunk({"reasoning_content": sanitize(text)}))

        turn = await self._take(emit)
        if cited := url_citations(turn.answer, "".join(texts)):
            event = open_webui_event(turn.answer)
            tell(self._chunk({"annotations": cited}, event=event))
        tell(self._chunk({}, finish_reason(turn), ragchat=own_fields(turn)))
        if self._counts:
            tell({**self._chunk({}, usage=usage(turn.answer)), "choices": []})

    @property
    def _counts(self) -> bool:
        options = self._asked.stream_options
        return options is not None and options.include_usage is True

    def _chunk(self, delta: dict[str, Any], reason: str | None = None, **fields: Any) -> dict[str, Any]:
        choice = {"delta": delta, "finish_reason": reason}
        counted = {"usage": None} if self._counts else {}
        return self._document("chat.completion.chunk", choice, **{**counted, **fields})

    def _document(self, kind: str, choice: dict[str, Any], **fields: Any) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": kind,
            "created": self._created,
            "model": self._asked.model,
            "choices": [{"index": 0, "logprobs": None, **choice}],
            **fields,
        }


def _event(document: dict[str, Any]) -> dict[str, Any]:
    line = b"data: " + msgspec.json.encode(document) + b"\n\n"
    return {"type": "http.response.body", "body": line, "more_body": True}
