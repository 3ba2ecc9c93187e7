"""The Python SDK's low-level server, as its documentation runs it: a Starlette application under uvicorn, one worker.

python_sdk.py PORT LIBRARY stateful|stateful-json|stateless-json
"""

import asyncio
import json
import sys

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from starlette.responses import Response
from starlette.routing import Route

port, library, mode = int(sys.argv[1]), json.load(open(sys.argv[2])), sys.argv[3]
listed = [
    types.Prompt(name=p["name"], description=p["description"], arguments=[types.PromptArgument(**a) for a in p["arguments"]])
    for p in library["prompts"]
]
prompts = {p["name"]: p for p in library["prompts"]}
runbooks, services = library["runbooks"], library["services"]
listening = []


async def list_prompts(ctx, params):
    return types.ListPromptsResult(prompts=listed)


async def get_prompt(ctx, params):
    prompt, arguments = prompts[params.name], params.arguments or {}
    text = "".join([part["text"] if "text" in part else arguments.get(part["arg"], "") for part in prompt["parts"]])
    messages = [types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))]
    book = runbooks.get(arguments.get("service", "")) if prompt["runbook"] else None
    if book:
        contents = types.TextResourceContents(uri=book["uri"], mime_type=book["mimeType"], text=book["text"])
        content = types.EmbeddedResource(type="resource", resource=contents)
        messages.append(types.PromptMessage(role="user", content=content))
    return types.GetPromptResult(description=prompt["description"], messages=messages)


async def complete(ctx, params):
    values = [s for s in services if s.startswith(params.argument.value)]
    completion = types.Completion(values=values[:100], total=len(values), has_more=len(values) > 100)
    return types.CompleteResult(completion=completion)


async def initialized(ctx, params):
    listening.append(ctx.session)


async def notify(request):
    await asyncio.gather(*[session.send_prompt_list_changed() for session in listening], return_exceptions=True)
    return Response(status_code=204)


server = Server("peer", on_list_prompts=list_prompts, on_get_prompt=get_prompt, on_completion=complete)
server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)
app = server.streamable_http_app(
    json_response=mode.endswith("-json"),
    stateless_http=mode.startswith("stateless"),
    max_sessions=None,
    custom_starlette_routes=[Route("/notify", notify, methods=["POST"])],
)
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
