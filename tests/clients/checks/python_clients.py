"""One conversation of a Python MCP client with Cuebook; started by python.mjs.

    python_clients.py mcp|fastmcp legacy|auto REPOSITORY URL
    python_clients.py mcp|fastmcp legacy|auto REPOSITORY COMMAND ARGUMENT...

Prints a line of JSON a check: [name, what went wrong or null].
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import fastmcp
import mcp
import mcp_types as types
from fastmcp.client.transports import StdioTransport
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import PromptsListChanged, listen

HERE = Path(__file__).parent
EXPECTED = json.loads((HERE.parent / "expected.json").read_text())
NAMES = [prompt["name"] for prompt in EXPECTED["prompts"]]
VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}


def connect(kind, mode, target, on_message):
    """The client `kind`, not yet connected: `target` is an address, or a command to start."""
    if kind == "mcp":
        server = target[0] if len(target) == 1 else StdioServerParameters(
            command=target[0], args=target[1:], env=dict(os.environ)
        )
        return mcp.Client(server, mode=mode, message_handler=on_message, read_timeout_seconds=10)
    server = target[0] if len(target) == 1 else StdioTransport(
        target[0], target[1:], env=dict(os.environ), keep_alive=False
    )
    return fastmcp.Client(server, mode=mode, message_handler=on_message, timeout=10)


async def prompts(client):
    """The prompts; FastMCP gives the list itself."""
    found = await client.list_prompts()
    return found if isinstance(found, list) else found.prompts


async def complete(client, argument, value):
    reference = types.PromptReference(type="ref/prompt", name="incident-triage")
    found = await client.complete(reference, {"name": argument, "value": value})
    return getattr(found, "completion", found).values


async def contents(client, uri):
    found = await client.read_resource(uri)
    return found if isinstance(found, list) else found.contents


async def said(client, name):
    return (await client.get_prompt(name)).messages[0].content.text


def publish(repository, name, text):
    subprocess.run([HERE.parent / "publish.sh", repository, name, text], check=True, timeout=20)


def same(actual, wanted):
    assert actual == wanted, f"wanted {wanted!r}\ngot    {actual!r}"


@contextlib.asynccontextmanager
async def notices(client, mode, messages):
    """Gives a function that waits for the next list_changed."""
    if mode == "legacy":

        async def arrived():
            while not isinstance(await messages.get(), types.PromptListChangedNotification):
                pass

        yield arrived
    else:
        async with listen(client.session, prompts_list_changed=True) as subscription:
            assert subscription.honored.prompts_list_changed, "the server does not tell of prompts"

            async def arrived():
                while not isinstance(await anext(subscription), PromptsListChanged):
                    pass

            yield arrived


async def converse(kind, mode, repository, target, check):
    messages = asyncio.Queue()
    async with connect(kind, mode, target, messages.put) as client:

        async def speaks():
            same(client.session.protocol_version, VERSIONS[mode])

        async def lists():
            same(sorted(prompt.name for prompt in await prompts(client)), NAMES)
            by_name = {prompt.name: prompt for prompt in await prompts(client)}
            for wanted in EXPECTED["prompts"]:
                prompt = by_name[wanted["name"]]
                same((prompt.title, prompt.description), (wanted["title"], wanted["description"]))
                arguments = [(one.name, bool(one.required)) for one in prompt.arguments or []]
                same(arguments, [(one["name"], one["required"]) for one in wanted["arguments"]])

        async def renders():
            same(await said(client, "release-notes"), EXPECTED["texts"]["release-notes"])
            triage = EXPECTED["incident-triage"]
            result = await client.get_prompt("incident-triage", triage["arguments"])
            got = [
                {"role": message.role, "resource": str(message.content.resource.uri)}
                if message.content.type == "resource"
                else {"role": message.role, "text": message.content.text}
                for message in result.messages
            ]
            same(got, triage["messages"])
            same(result.messages[1].content.resource.text, EXPECTED["texts"]["runbook://payments"])

        async def completes():
            same(await complete(client, "service", "pay"), ["payments"])
            same((await complete(client, "severity", "cri"))[0], "CRITICAL")

        async def reads():
            same([one.text for one in await contents(client, "runbook://payments")], [EXPECTED["texts"]["runbook://payments"]])

        async def is_refused():
            for name in ["nothing-of-the-kind", "incident-triage"]:  # unknown; a required argument missing
                try:
                    await client.get_prompt(name)
                except mcp.MCPError as error:
                    same(error.error.code, -32602)
                else:
                    raise AssertionError(f"an answer for {name}")

        await check(f"connects and speaks {VERSIONS[mode]}", speaks)
        await check("lists the prompts", lists)
        await check("renders", renders)
        await check("completes", completes)
        await check("reads a resource", reads)
        await check("is refused what there is not", is_refused)

        async with notices(client, mode, messages) as arrived:

            async def told_of_a_prompt():
                publish(repository, "arrival", "first")
                await arrived()
                assert "arrival" in [prompt.name for prompt in await prompts(client)], "the list lacks it"
                same(await said(client, "arrival"), "first\n")

            async def told_of_a_text():
                publish(repository, "arrival", "second")
                await arrived()
                same(await said(client, "arrival"), "second\n")

            await check("is told of a new prompt, and the list has it", told_of_a_prompt)
            await check("is told of a new text, and gets it", told_of_a_text)


async def main(kind, mode, repository, *target):
    async def check(name, body):
        error = None
        try:
            await asyncio.wait_for(body(), 10)
        except Exception as failure:  # noqa: BLE001 - whatever went wrong is the check's result
            error = f"{type(failure).__name__}: {failure}"
        print(json.dumps([name, error]), flush=True)

    async with asyncio.timeout(50):
        await converse(kind, mode, repository, list(target), check)


asyncio.run(main(*sys.argv[1:]))
