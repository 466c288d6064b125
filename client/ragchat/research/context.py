"""The dependencies and limits of a research."""

from __future__ import annotations

from dataclasses import dataclass

from ragchat.llm.client import Model
from ragchat.settings import ResearchSettings
from ragchat.turn.approval import Approve
from ragchat.turn.limits import TurnLimits
from ragchat.turn.prompt import Prompts, packaged_prompt
from ragchat.turn.retrieval import Memory
from ragchat.turn.tools import Toolbox


@dataclass(frozen=True)
class ResearchContext:
    """`model` None: offline."""

    memory: Memory
    toolbox: Toolbox
    prompts: Prompts
    limits: TurnLimits
    settings: ResearchSettings
    model: Model | None
    approve: Approve | None


def prompt(name: str) -> str:
    """A packaged prompt of a research."""
    return packaged_prompt(f"research_{name}")
