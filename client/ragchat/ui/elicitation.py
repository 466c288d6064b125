"""Answers a server's request for input: a form, field by field, or a visit to a page."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from msgspec import UNSET
from prompt_toolkit.completion import Completer, WordCompleter

from ragchat.sanitize import one_line, visible
from ragchat.servers.asking import CANCELLED, DECLINED
from ragchat.servers.forms import SECRET_WARNING, Form, FormField, asks_for_secret, read_form
from ragchat.servers.visits import Address
from ragchat.ui.dialog import Dialog, Read, choose
from ragcommon.concurrency import first_of
from ragmcp.protocol.schema.input import Elicit, ElicitResult

DECLINE = "/decline"
SENDING = "[Y]es, [e]dit, [d]ecline, [c]ancel"
OPENING = "[y]es, [N]o, [c]ancel"


class Elicitation:
    """`show` prints a line; its second argument is a style."""

    def __init__(self, dialog: Dialog, show: Callable[..., None]) -> None:
        self._dialog = dialog
        self._show = show

    async def answer(self, server: str, request: Elicit) -> ElicitResult:
        """The user's answer. Raises InvalidParams for a form that cannot be shown."""
        if request.mode == "url":
            async with self._dialog.exclusive() as read:
                reply = await self._offer(server, request, read)
                # Without an id the server cannot wait for the visit: it is asked again at once.
                if reply.action == "accept" and request.elicitation_id is UNSET and not await _is_done(read):
                    return CANCELLED
                return reply
        form = read_form(request.requested_schema)
        async with self._dialog.exclusive() as read:
            self._show(f"{server} asks: {request.message}", "name")
            self._show(f"{DECLINE} declines, Ctrl-C or Esc cancels.")
            return await self._fill_in(server, form, read)

    async def _fill_in(self, server: str, form: Form, read: Read) -> ElicitResult:
        values: dict[str, Any] = {}
        while True:
            for name, form_field in form.properties.items():
                self._describe(name, form_field, is_required=name in form.required)
                default = values.get(name, form_field.default)
                typed = await self._value(name, form, default, read)
                if isinstance(typed, ElicitResult):
                    return typed
                values.pop(name, None)
                values |= typed
            match await choose(read, self._show, f"Send this to {one_line(server)}?", SENDING):
                case "yes":
                    return ElicitResult(action="accept", content=values)
                case "edit":
                    continue
                case "decline":
                    return DECLINED
                case _:
                    return CANCELLED

    def _describe(self, name: str, form_field: FormField, *, is_required: bool) -> None:
        constraints = ", ".join([*form_field.constraints, *([] if is_required else ["may be left out"])])
        description = f" {form_field.description}" if form_field.description else ""
        self._show(one_line(f"{form_field.title or name} ({constraints}).{description}"))
        for number, (value, title) in enumerate(form_field.choices.items(), 1):
            meaning = title if value == title else f"{title} ({value})"
            self._show(f"  {number}  {one_line(meaning)}")
        if asks_for_secret(name, form_field):
            self._show(SECRET_WARNING, "warning")

    async def _value(self, name: str, form: Form, default: Any, read: Read) -> dict[str, Any] | ElicitResult:
        """The field with its value, without it if it is left out, or how the user refused."""
        form_field = form.properties[name]
        question = f"{one_line(form_field.title or name)}: "
        shown = "" if default is UNSET or default is None else form_field.shown(default)
        completer = _completer(form_field)
        while True:
            typed = await read(question, completer, shown)
            if typed is None:
                return CANCELLED
            if typed.strip() == DECLINE:
                return DECLINED
            try:
                return form.entered(name, typed)
            except ValueError as error:
                self._show(str(error), "warning")

    async def visit(self, server: str, request: Elicit, done: anyio.Event) -> bool:
        """Let the user visit a page, and wait until they or the server (`done`) say that they are done."""
        async with self._dialog.exclusive() as read:
            if (await self._offer(server, request, read)).action != "accept":
                return False
            return await first_of(done.wait, partial(_is_done, read)) is not False

    async def _offer(self, server: str, request: Elicit, read: Read) -> ElicitResult:
        """Show an address, and open it if the user agrees."""
        address = Address.of(request.url)
        self._show(f"{server} wants you to open a page: {one_line(visible(request.message))}", "name")
        self._show(f"  Address: {visible(address.url)}")
        self._show(f"  Host:    {visible(address.host)}", "name")
        for warning in address.warnings:
            self._show(warning, "warning")
        if not address.is_web_page:
            return DECLINED
        match await choose(read, self._show, "Open it in your browser?", OPENING):
            case "yes":
                await self._open(address.url)
                return ElicitResult(action="accept")
            case "no":
                return DECLINED
            case _:
                return CANCELLED

    async def _open(self, url: str) -> None:
        if not await anyio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True):
            self._show("No browser was found: open the address yourself.")


async def _is_done(read: Read) -> bool:
    """Whether the user has done what the page wants."""
    return await read("Press Enter when you are done there. Ctrl-C or Esc cancels. ") is not None


def _completer(form_field: FormField) -> Completer | None:
    words = [*form_field.choices.values()] or (["y", "n"] if form_field.type == "boolean" else [])
    return WordCompleter(words, ignore_case=True, sentence=form_field.type != "array") if words else None
