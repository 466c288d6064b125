"""What servers and tools ask the user, as dialogs of the page; the rules are those of the terminal."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, TypeVar

import anyio
import msgspec
from msgspec import UNSET

from ragchat.llm.types import decode_arguments
from ragchat.sanitize import one_line, visible, visible_json
from ragchat.servers.asking import CANCELLED, DECLINED, User
from ragchat.servers.forms import SECRET_WARNING, Form, asks_for_secret, read_form
from ragchat.servers.permissions import Permissions, Rule
from ragchat.servers.sampling import ModelRequest
from ragchat.servers.visits import Address
from ragchat.turn.approval import PermissionRequest
from ragchat.web.dialogs import Dialogs, RunningTurn
from ragchat.web.errors import NotAccepted
from ragcommon.concurrency import first_of
from ragmcp.errors import InputDeclined
from ragmcp.protocol.schema.input import Elicit, ElicitResult, Sample, SamplingResult

log = logging.getLogger(__name__)

T = TypeVar("T")


class _Approval(msgspec.Struct, frozen=True):
    """`arguments` is JSON, "" for those that were shown."""

    decision: Literal["once", "session", "always", "never", "no"]
    arguments: str = ""


class _Filled(msgspec.Struct, frozen=True):
    action: Literal["accept", "decline", "cancel"]
    values: dict[str, str | list[str]] = {}


class _Decided(msgspec.Struct, frozen=True):
    decision: str


async def approve(
    dialogs: Dialogs, turn: RunningTurn, permissions: Permissions, question: PermissionRequest
) -> dict[str, Any] | None:
    """The arguments to call a tool with, None if the user does not allow it."""
    tool = question.tool
    # JSON in which nothing is hidden; the user may edit it.
    shown = visible_json(msgspec.json.format(msgspec.json.encode(question.arguments)).decode())
    asked = {
        "tool": visible(tool.name),
        "server": visible(tool.server),
        "arguments": shown,
        "reasons": [*question.reasons],
    }

    def check(answer: dict[str, Any]) -> dict[str, Any] | None:
        chosen = _converted(answer, _Approval)
        is_allowed = chosen.decision in ("once", "session", "always")
        try:
            arguments = decode_arguments(chosen.arguments) if chosen.arguments else question.arguments
        except ValueError as error:
            if is_allowed:
                raise NotAccepted(f"These are not the arguments of a tool: {error}.") from None
        if chosen.decision in ("session", "always", "never"):
            permissions.remember(tool.identity, [tool.info], Rule(chosen.decision))
        return arguments if is_allowed else None

    return await dialogs.ask(turn.tell, "approval", asked, check)


class PageUser:
    """The user, as servers ask them: in the newest running turn. Without one, every request is declined."""

    def __init__(self, dialogs: Dialogs, permissions: Permissions) -> None:
        self._dialogs = dialogs
        self._permissions = permissions

    def user(self) -> User:
        return User(self.elicit, self.visit, self.sample, self.show_progress)

    async def elicit(self, server: str, request: Elicit) -> ElicitResult:
        """Raises InvalidParams for a form that cannot be shown."""
        if (turn := self._turn) is None:
            return DECLINED
        if request.mode != "url":
            form = read_form(request.requested_schema)
            asked = {
                "server": visible(server),
                "message": visible(request.message),
                "fields": _fields(form),
            }
            return await self._dialogs.ask(turn.tell, "form", asked, _filler(form)) or CANCELLED
        result = await self._offer(turn, server, request)
        # Without an id the server cannot wait for the visit: it is asked again at once.
        if result.action == "accept" and request.elicitation_id is UNSET:
            return result if await self._is_done(turn, server) else CANCELLED
        return result

    async def visit(self, server: str, request: Elicit, done: anyio.Event) -> bool:
        """Let the user visit a page, and wait until they or the server (`done`) say that they are done."""
        if (turn := self._turn) is None or (await self._offer(turn, server, request)).action != "accept":
            return False
        return await first_of(done.wait, partial(self._is_done, turn, server)) is not False

    async def sample(self, server: str, request: Sample) -> SamplingResult:
        """The model's reply, if the user allows the request. Raises InputDeclined."""
        if (turn := self._turn) is None:
            raise InputDeclined("The user is not there.")
        find_model = turn.conversation.model.find
        asked = await ModelRequest.of(server, request, self._permissions, find_model)
        shown = {"server": visible(server), "model": visible(asked.model.name)}
        if not asked.is_allowed:
            messages = [[one["role"], visible(str(one["content"]))] for one in asked.messages]
            question = {**shown, "tokens": asked.max_tokens, "messages": messages}
            asked.decide(await self._dialogs.ask(turn.tell, "sampling", question, _decision) or "no")
        completion = await asked.complete()
        may_send = asked.is_allowed
        if may_send:
            self.tell(f"{server} asked {asked.model.name}, which replied: {completion.text}")
        else:
            reply = {**shown, "text": visible(completion.text)}
            may_send = await self._dialogs.ask(turn.tell, "reply", reply, _decision) == "once"
        return asked.result(completion, may_send=may_send)

    def show_progress(self, text: str) -> None:
        if (turn := self._turn) is not None:
            turn.tell({"type": "progress", "text": one_line(text)})

    def tell(self, text: str) -> None:
        if (turn := self._turn) is not None:
            turn.tell({"type": "notice", "text": one_line(text)})
        else:
            log.info("%s", text)

    @property
    def _turn(self) -> RunningTurn | None:
        return self._dialogs.turns[-1] if self._dialogs.turns else None

    async def _offer(self, turn: RunningTurn, server: str, request: Elicit) -> ElicitResult:
        """Whether the user opens the page."""
        address = Address.of(request.url)
        if not address.is_web_page:
            self.tell(f"{server} wanted you to open {visible(address.url)}. {address.warnings[0]}")
            return DECLINED
        asked = {
            "server": visible(server),
            "message": visible(request.message),
            "url": address.url,  # printable, as a web page
            "host": address.host,
            "warnings": address.warnings,
        }
        return await self._dialogs.ask(turn.tell, "visit", asked, _action) or CANCELLED

    async def _is_done(self, turn: RunningTurn, server: str) -> bool:
        """Whether the user has done what the page wants."""
        answer = await self._dialogs.ask(turn.tell, "visited", {"server": visible(server)}, _action)
        return answer is not None and answer.action == "accept"


def _fields(form: Form) -> Sequence[dict[str, Any]]:
    return [
        {
            "name": name,
            "title": one_line(visible(one.title or name)),
            "description": visible(one.description),
            "constraints": one_line(visible(", ".join(one.constraints))),
            "type": one.type,
            "choices": [[value, one_line(visible(title))] for value, title in one.choices.items()],
            "default": "" if one.default is UNSET or one.default is None else one.shown(one.default),
            "chosen": one.default if isinstance(one.default, list) else [],
            "required": name in form.required,
            "warning": SECRET_WARNING if asks_for_secret(name, one) else "",
        }
        for name, one in form.properties.items()
    ]


def _filler(form: Form) -> Any:
    def check(answer: dict[str, Any]) -> ElicitResult:
        filled, values, faults = _converted(answer, _Filled), dict[str, Any](), list[str]()
        if filled.action != "accept":
            return ElicitResult(action=filled.action)
        for name, one in form.properties.items():
            try:
                values |= form.entered(name, filled.values.get(name, ""))
            except ValueError as error:
                faults.append(f"{one_line(one.title or name)}: {error}")
        if faults:
            raise NotAccepted(" ".join(faults))
        return ElicitResult(action="accept", content=values)

    return check


def _action(answer: dict[str, Any]) -> ElicitResult:
    return ElicitResult(action=_converted(answer, _Filled).action)


def _decision(answer: dict[str, Any]) -> str:
    return _converted(answer, _Decided).decision


def _converted(answer: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise NotAccepted(f"The answer cannot be read: {error}.") from None
