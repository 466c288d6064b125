"""The model in use: resolved at first use, and changed when the user selects another one."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from ragchat.llm.client import Model
from ragchat.llm.discovery import AUTO, chat_models, resolve, unknown_model
from ragchat.llm.types import OFFLINE
from ragchat.settings import ModelSettings
from ragconfig.keys import OPENAI_URL


class ModelSelection:
    """Starts with the configured model. Every coroutine raises ModelError."""

    def __init__(self, settings: ModelSettings, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._environ = environ
        self.selected = settings.name
        """What was selected: "auto", "offline" or the name of a model."""
        self._found = False
        self._model: Model | None = None
        self._finding = anyio.Lock()

    @property
    def name(self) -> str:
        """The name of the model; "auto" until it is resolved."""
        if not self._found:
            return self.selected
        return self._model.name if self._model else OFFLINE

    @property
    def context(self) -> int | None:
        """The model's context length in tokens, if its server reports it."""
        return self._model.context if self._model else None

    async def find(self) -> Model | None:
        """The model; None: offline. After an error, the next call tries again."""
        if not self._found:
            async with self._finding:
                if not self._found:
                    model = await resolve(self.selected, self._settings, self._environ)
                    await _find_context(model)
                    if not self._found:
                        self._model, self._found = model, True
                    elif model is not None:  # the user has selected another model in the meantime
                        await model.aclose()
        return self._model

    async def select(self, name: str) -> None:
        """Change to "auto", "offline" or a model by its name. On an error nothing changes."""
        model = await resolve(name, self._settings, self._environ)
        if model is not None and name != AUTO:
            names = await model.names()
            if names and model.name not in names:
                await model.aclose()
                raise unknown_model(model.endpoint, names)
        await _find_context(model)
        previous, self._model = self._model, model
        self.selected, self._found = name, True
        if previous is not None:
            await previous.aclose()

    async def choices(self) -> list[str]:
        """The names that `select` takes here, "auto" and "offline" last."""
        model = await self.find()
        return [*(chat_models(await model.names()) if model else []), AUTO, OFFLINE]

    async def aclose(self) -> None:
        if self._model is not None:
            await self._model.aclose()


async def _find_context(model: Model | None) -> None:
    if model is not None and model.endpoint.base_url != OPENAI_URL:  # OpenAI does not report it
        await model.find_context()
