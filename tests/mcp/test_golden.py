"""What an MCP client reads about the server, whole: instructions, tools, their arguments, prompts and resources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.golden_files import compare_golden
from tests.mcp.world import config_for, inside


async def test_what_a_client_reads_about_the_server_is_as_recorded(web: str, tmp_path: Path) -> None:
    async with inside(config_for(web, tmp_path, knowledge=True)) as (client, _):
        tools = (await client.list_tools()).tools
        prompts = (await client.list_prompts()).prompts
        templates = (await client.list_resource_templates()).resource_templates
        lines = [client.instructions or "", ""]
    for tool in tools:
        lines += [f"tool {tool.name}: {tool.title}", *indent(tool.description), *describe_schema(tool.input_schema), ""]
    for prompt in prompts:
        lines += [f"prompt {prompt.name}: {prompt.title}", *indent(prompt.description)]
        lines += [f"    {argument.name}: {argument.description}" for argument in prompt.arguments or ()]
    lines += [f"resource {each.uri_template}: {each.title or each.name}; {each.description}" for each in templates]
    compare_golden("mcp.txt", "\n".join(lines) + "\n")


def indent(text: str | None) -> list[str]:
    return [f"  {line}".rstrip() for line in (text or "").splitlines()]


def describe_schema(schema: dict[str, Any]) -> list[str]:
    return [f"    {name}: {field.get('description', '')}".rstrip() for name, field in schema.get("properties", {}).items()]
