"""Tools and a prompt that ask the client: its user, its model, its roots. The same code serves both eras."""

from __future__ import annotations

import json
from typing import Any

from ragmcp.protocol.schema.input import Elicit, ElicitResult, InputRequest, ListRoots, Sample
from ragmcp.server.call import Call
from ragmcp.server.tools import tool
from tests.support.prompts import prompt


def form(message: str, **types: str) -> Elicit:
    """A form with required fields of the given JSON types."""
    properties = {name: {"type": type} for name, type in types.items()}
    return Elicit(
        message=message,
        requested_schema={"type": "object", "properties": properties, "required": list(types)},
    )


def optional_form(message: str, **properties: dict[str, Any]) -> Elicit:
    """A form of which nothing need be filled in."""
    return Elicit(
        message=message, requested_schema={"type": "object", "properties": properties, "required": []}
    )


def completion(text: str, max_tokens: int) -> Sample:
    """A question to the client's model."""
    return Sample(
        messages=[{"role": "user", "content": {"type": "text", "text": text}}], max_tokens=max_tokens
    )


def described(answer: ElicitResult) -> str:
    """What the user did, for the referee."""
    return f"action={answer.action}, content={json.dumps(answer.content)}"


# Of the legacy era


@tool()
async def test_sampling(call: Call, prompt: str) -> str:
    """Asks the client's model."""
    answers = await call.ask(answer=completion(prompt, max_tokens=100))
    return f"LLM response: {answers['answer'].content['text']}"


@tool()
async def test_elicitation(call: Call, message: str) -> str:
    """Asks the user."""
    answers = await call.ask(answer=form(message, response="string"))
    return f"User response: {described(answers['answer'])}"


@tool()
async def test_elicitation_sep1034_defaults(call: Call) -> str:
    """A form that is filled in already."""
    asked = optional_form(
        "Please review and update the form fields with defaults",
        name={"type": "string", "description": "User name", "default": "John Doe"},
        age={"type": "integer", "description": "User age", "default": 30},
        score={"type": "number", "description": "User score", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "description": "Verification status", "default": True},
    )
    return f"Elicitation completed: {described((await call.ask(answer=asked))['answer'])}"


def _titled(*choices: str) -> list[dict[str, str]]:
    return [{"const": f"value{n}", "title": choice} for n, choice in enumerate(choices, 1)]


@tool()
async def test_elicitation_sep1330_enums(call: Call) -> str:
    """Choices in all five spellings."""
    options = ["option1", "option2", "option3"]
    asked = optional_form(
        "Please select options from the enum fields",
        untitledSingle={"type": "string", "enum": options},
        titledSingle={"type": "string", "oneOf": _titled("First Option", "Second Option", "Third Option")},
        legacyEnum={
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        untitledMulti={
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "string", "enum": options},
        },
        titledMulti={
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")},
        },
    )
    return f"Elicitation completed: {described((await call.ask(answer=asked))['answer'])}"


# Of the modern era


@tool()
async def test_input_required_result_elicitation(call: Call) -> str:
    """Asks for a name."""
    answers = await call.ask(user_name=form("What is your name?", name="string"))
    return f"Hello, {answers['user_name'].content.get('name', 'friend')}!"


@tool()
async def test_input_required_result_sampling(call: Call) -> str:
    """Asks the client's model."""
    answers = await call.ask(capital_question=completion("What is the capital of France?", max_tokens=100))
    return str(answers["capital_question"].content["text"])


@tool()
async def test_input_required_result_list_roots(call: Call) -> str:
    """Asks for the roots."""
    roots = (await call.ask(client_roots=ListRoots()))["client_roots"].roots
    return f"Roots: {', '.join(root.uri for root in roots)}"


@tool()
async def test_input_required_result_request_state(call: Call) -> str:
    """Asks, and gets its state back."""
    await call.ask(confirm=form("Please confirm", ok="boolean"))
    return "state-ok: confirmed"


@tool()
async def test_input_required_result_tampered_state(call: Call) -> str:
    """Asks, and accepts only its own state."""
    await call.ask(confirm=form("Please confirm", ok="boolean"))
    return "integrity-ok: state verified"


@tool()
async def test_input_required_result_multiple_inputs(call: Call) -> str:
    """Asks for everything at once."""
    answers = await call.ask(
        user_name=form("What is your name?", name="string"),
        greeting=completion("Generate a greeting", max_tokens=50),
        client_roots=ListRoots(),
    )
    return f"{answers['greeting'].content['text']} {answers['user_name'].content.get('name')}"


@tool()
async def test_input_required_result_multi_round(call: Call) -> str:
    """Asks, and asks again."""
    first = await call.ask(step1=form("Step 1: What is your name?", name="string"))
    second = await call.ask(step2=form("Step 2: What is your favorite color?", color="string"))
    return f"{first['step1'].content.get('name')} likes {second['step2'].content.get('color')}"


@tool()
async def test_input_required_result_capabilities(call: Call) -> str:
    """Asks only for what the client can give."""
    asked: dict[str, InputRequest] = {}
    if call.supports("elicitation"):
        asked["elicit_input"] = form("Elicitation input", value="string")
    if call.supports("sampling"):
        asked["sample_input"] = completion("Sample request", max_tokens=50)
    return f"capabilities-ok: received {', '.join(await call.ask(**asked))}"


@tool()
async def test_streaming_elicitation(call: Call) -> str:
    """Reports progress, then asks."""
    await call.progress(50, 100)
    await call.ask(confirm=form("Please confirm", ok="boolean"))
    return "Streaming complete"


@prompt()
async def test_input_required_result_prompt(call: Call) -> str:
    """Asks what it is to be about."""
    answers = await call.ask(user_context=form("What context should the prompt use?", context="string"))
    return f"Use this context: {answers['user_context'].content.get('context')}"


TOOLS = [
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
    test_streaming_elicitation,
]
