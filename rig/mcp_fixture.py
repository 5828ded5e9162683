"""The tools, resources and prompts that the MCP conformance suite asks for, served by the stack that serves nexi.

    python -m rig.mcp_fixture 8010

The transport, its guard and its sessions are `nexi.mcp.server`; only what is offered is the suite's.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import sys
import zlib
from itertools import count
from typing import Annotated, Any

import mcp_types as types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPError
from pydantic import Field

from nexi.mcp.server import build_http_app

STEP_S = 0.05
MISSING_CAPABILITY = -32021


def _png() -> str:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\x00\xff\x00\x00"))
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + head + body + chunk(b"IEND", b"")).decode()


def _wav() -> str:
    """Eight silent samples."""
    data = b"\x80" * 8
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8)
    whole = b"WAVE" + form + b"data" + struct.pack("<I", len(data)) + data
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(whole)) + whole).decode()


PNG, WAV = _png(), _wav()


class Events(EventStore):
    """What was sent on each stream, so that a client that comes back misses nothing."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._events: dict[str, tuple[str, types.JSONRPCMessage | None]] = {}

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        number = str(next(self._numbers))
        self._events[number] = (stream_id, message)
        return number

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if last_event_id not in self._events:
            return None
        stream = self._events[last_event_id][0]
        for number, (its, message) in list(self._events.items()):
            if its == stream and int(number) > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, number))
        return stream


server = MCPServer("nexi-conformance", version="1", log_level="WARNING")


def text(value: str) -> types.TextContent:
    return types.TextContent(type="text", text=value)


def resource(uri: str, mime_type: str, value: str) -> types.EmbeddedResource:
    inner = types.TextResourceContents(uri=uri, mime_type=mime_type, text=value)
    return types.EmbeddedResource(type="resource", resource=inner)


def image() -> types.ImageContent:
    return types.ImageContent(type="image", data=PNG, mime_type="image/png")


# tools


@server.tool()
def test_simple_text() -> types.TextContent:
    """A text."""
    return text("This is a simple text response for testing.")


@server.tool()
def test_image_content() -> types.ImageContent:
    """An image."""
    return image()


@server.tool()
def test_audio_content() -> types.AudioContent:
    """A sound."""
    return types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")


@server.tool()
def test_embedded_resource() -> types.EmbeddedResource:
    """A resource inside a result."""
    return resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")


@server.tool()
def test_multiple_content_types() -> list[types.ContentBlock]:
    """Text, image and resource."""
    data = json.dumps({"test": "data", "value": 123})
    return [text("Multiple content types test:"), image(), resource("test://mixed-content-resource", "application/json", data)]


@server.tool()
async def test_tool_with_logging(ctx: Context[Any, Any]) -> str:
    """Three log messages."""
    for pause, message in ((0, "started"), (STEP_S, "processing data"), (STEP_S, "completed")):
        await asyncio.sleep(pause)
        said = f"Tool {message}" if "data" in message else f"Tool execution {message}"
        await ctx.info(said)
    return "Tool with logging executed"


@server.tool()
async def test_logging_tool(ctx: Context[Any, Any]) -> str:
    """A log message for who asked for them."""
    await ctx.info("a message")
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context[Any, Any]) -> str:
    """Progress in three steps."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await asyncio.sleep(STEP_S)
    return "Tool with progress executed"


@server.tool()
def test_error_handling() -> str:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool()
async def test_sampling(ctx: Context[Any, Any], prompt: str) -> str:
    """Asks the client's model."""
    message = types.SamplingMessage(role="user", content=text(prompt))
    reply = await ctx.session.create_message([message], max_tokens=100, related_request_id=ctx.request_context.request_id)
    return f"LLM response: {getattr(reply.content, 'text', '')}"


async def ask(ctx: Context[Any, Any], message: str, properties: dict[str, Any], required: list[str]) -> types.ElicitResult:
    schema = {"type": "object", "properties": properties, "required": required}
    return await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_context.request_id)


def told(reply: types.ElicitResult) -> str:
    return f"action={reply.action}, content={json.dumps(reply.content)}"


@server.tool()
async def test_elicitation(ctx: Context[Any, Any], message: str) -> str:
    """Asks the user."""
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return f"User response: {told(await ask(ctx, message, fields, ['username', 'email']))}"


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context[Any, Any]) -> str:
    """Asks the user, with defaults."""
    fields = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return f"Elicitation completed: {told(await ask(ctx, 'Your details, please', fields, []))}"


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context[Any, Any]) -> str:
    """Asks the user to choose, in every form there is."""
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)]
    fields = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return f"Elicitation completed: {told(await ask(ctx, 'Choose, please', fields, []))}"


@server.tool()
async def test_reconnection(ctx: Context[Any, Any]) -> str:
    """Closes its stream on the way; the client comes back for the rest."""
    await asyncio.sleep(STEP_S)
    await ctx.close_sse_stream()
    await asyncio.sleep(STEP_S)
    return "The stream was closed and taken up again."


@server.tool()
def test_custom_headers(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """An argument that a proxy may read from a header."""
    return f"region={region}"


@server.tool()
async def test_trigger_tool_change(ctx: Context[Any, Any]) -> str:
    """Tells listeners that the tools changed."""
    await ctx.notify_tools_changed()
    return "told"


@server.tool()
async def test_trigger_prompt_change(ctx: Context[Any, Any]) -> str:
    """Tells listeners that the prompts changed."""
    await ctx.notify_prompts_changed()
    return "told"


def _add_schema_tool() -> None:
    """A schema that no signature can say, as it is."""

    def taken() -> str:
        return "ok"

    server.add_tool(taken, name="json_schema_2020_12_tool", description="A tool with a whole JSON Schema 2020-12.")
    tool = server._tool_manager.get_tool("json_schema_2020_12_tool")
    assert tool is not None
    tool.parameters = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }


_add_schema_tool()


# tools that need more from the client first (2026-07-28)


def form(message: str, name: str, kind: str = "string") -> types.ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(question: str, most: int) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=text(question))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=most))


def needed(requests: types.InputRequests, state: str | None = None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests, request_state=state)


def said(ctx: Context[Any, Any], key: str, name: str) -> str | None:
    """What a user wrote into one field of one form, if they did."""
    reply = (ctx.input_responses or {}).get(key)
    if not isinstance(reply, types.ElicitResult) or reply.action != "accept" or not reply.content:
        return None
    value = reply.content.get(name)
    return None if value is None else str(value)


@server.tool()
def test_input_required_result_elicitation(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Greets whoever says a name."""
    name = said(ctx, "user_name", "name")
    return needed({"user_name": form("What is your name?", "name")}) if name is None else f"Hello, {name}!"


@server.tool()
def test_input_required_result_sampling(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Says what the client's model says."""
    reply = (ctx.input_responses or {}).get("capital_question")
    if not isinstance(reply, types.CreateMessageResult):
        return needed({"capital_question": sample("What is the capital of France?", 100)})
    return str(getattr(reply.content, "text", reply.content))


@server.tool()
def test_input_required_result_list_roots(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Names the client's roots."""
    reply = (ctx.input_responses or {}).get("client_roots")
    if not isinstance(reply, types.ListRootsResult):
        return needed({"client_roots": types.ListRootsRequest()})
    return "Roots: " + ", ".join(str(root.uri) for root in reply.roots)


@server.tool()
def test_input_required_result_request_state(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Takes its own state back."""
    if ctx.request_state != "the-state" or said(ctx, "confirm", "ok") is None:
        return needed({"confirm": form("Please confirm", "ok", "boolean")}, "the-state")
    return "state-ok"


@server.tool()
def test_input_required_result_tampered_state(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Takes back only a state that nobody touched."""
    if ctx.request_state != "sealed" or said(ctx, "confirm", "ok") is None:
        return needed({"confirm": form("Please confirm", "ok", "boolean")}, "sealed")
    return "state-ok"


@server.tool()
def test_input_required_result_multiple_inputs(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Needs three things at once."""
    requests: types.InputRequests = {
        "user_name": form("What is your name?", "name"),
        "greeting": sample("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    return "all there" if set(requests) <= set(ctx.input_responses or {}) else needed(requests, "three")


@server.tool()
def test_input_required_result_multi_round(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Asks twice."""
    if ctx.request_state == "two" and (color := said(ctx, "step2", "color")):
        return f"Your favorite color is {color}."
    if ctx.request_state == "one" and said(ctx, "step1", "name"):
        return needed({"step2": form("Step 2: What is your favorite color?", "color")}, "two")
    return needed({"step1": form("Step 1: What is your name?", "name")}, "one")


@server.tool()
def test_input_required_result_capabilities(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Asks only for what the client can do."""
    if ctx.input_responses:
        return "thank you"
    can = ctx.client_capabilities or types.ClientCapabilities()
    wanted: types.InputRequests = {}
    if can.elicitation is not None:
        wanted["user_name"] = form("What is your name?", "name")
    if can.sampling is not None:
        wanted["greeting"] = sample("Generate a greeting", 50)
    return needed(wanted) if wanted else "nothing to ask with"


@server.tool()
def test_missing_capability(ctx: Context[Any, Any]) -> str:
    """Cannot work without sampling."""
    can = ctx.client_capabilities
    if can is None or can.sampling is None:
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(code=MISSING_CAPABILITY, message="sampling is needed", data=data)
    return "sampling is there"


@server.tool()
async def test_streaming_elicitation(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """Progress first, then a question."""
    await ctx.report_progress(1, 2)
    name = said(ctx, "user_name", "name")
    return needed({"user_name": form("What is your name?", "name")}) if name is None else f"Hello, {name}!"


# resources and prompts


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return base64.b64decode(PNG)


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    """Something to subscribe to."""
    return "Watched resource content."


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 - the suite's name
    """A template."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(
    arg1: Annotated[str, Field(description="First test argument")],
    arg2: Annotated[str, Field(description="Second test argument")],
) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
    """A prompt with a resource."""
    inner = resource(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [UserMessage(inner), UserMessage("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with an image."""
    return [UserMessage(image()), UserMessage("Please analyze the image above.")]


@server.prompt()
def test_input_required_result_prompt(ctx: Context[Any, Any]) -> str | types.InputRequiredResult:
    """A prompt that asks first."""
    context = said(ctx, "user_context", "context")
    if context is None:
        return needed({"user_context": form("What context should the prompt use?", "context")})
    return f"Use this context: {context}"


@server.completion()
async def complete(ref: Any, argument: Any, context: Any) -> types.Completion:
    return types.Completion(
        values=[v for v in ("paris", "park", "party") if v.startswith(argument.value)], total=3, has_more=False
    )


async def _taken(ctx: Any, params: Any) -> types.EmptyResult:
    return types.EmptyResult()


def _add_old_methods() -> None:
    low = server._lowlevel_server
    low.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _taken)
    low.add_request_handler("resources/subscribe", types.SubscribeRequestParams, _taken)
    low.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, _taken)


_add_old_methods()


def main() -> None:
    import uvicorn

    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8010
    app = build_http_app(server, host="127.0.0.1", event_store=Events(), retry_interval=50)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
