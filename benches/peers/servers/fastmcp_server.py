"""FastMCP, as its documentation deploys it: `http_app` under uvicorn, one worker.

fastmcp_server.py PORT LIBRARY stateful|stateful-json|stateless-json
"""

import asyncio
import json
import sys

import mcp_types as types
import uvicorn
from fastmcp import FastMCP
from fastmcp.prompts import Message, Prompt
from starlette.responses import Response

port, library, mode = int(sys.argv[1]), json.load(open(sys.argv[2])), sys.argv[3]
runbooks, services = library["runbooks"], library["services"]
listening = []
mcp = FastMCP("peer")


def prompt_of(entry):
    parts, with_runbook = entry["parts"], entry["runbook"]

    def prompt(ticket: str, service: str = "", severity: str = "HIGH") -> list[Message]:
        values = {"ticket": ticket, "service": service, "severity": severity}
        messages = [Message("".join([part["text"] if "text" in part else values[part["arg"]] for part in parts]))]
        book = runbooks.get(service) if with_runbook else None
        if book:
            contents = types.TextResourceContents(uri=book["uri"], mime_type=book["mimeType"], text=book["text"])
            messages.append(Message(types.EmbeddedResource(type="resource", resource=contents)))
        return messages

    made = Prompt.from_function(prompt, name=entry["name"], description=entry["description"])
    described = {a["name"]: a["description"] for a in entry["arguments"]}
    for argument in made.arguments:
        argument.description = described[argument.name]
    return made


for entry in library["prompts"]:
    mcp.add_prompt(prompt_of(entry))


@mcp.completion
def complete(ref, argument, context):
    values = [s for s in services if s.startswith(argument.value)]
    return types.Completion(values=values[:100], total=len(values), has_more=len(values) > 100)


async def initialized(ctx, params):
    listening.append(ctx.session)


@mcp.custom_route("/notify", methods=["POST"])
async def notify(request):
    await asyncio.gather(*[session.send_prompt_list_changed() for session in listening], return_exceptions=True)
    return Response(status_code=204)


# FastMCP tells of its sessions by a middleware alone, which every request would pass; the hook of the server below it costs
# requests nothing.
mcp._mcp_server.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)
app = mcp.http_app(json_response=mode.endswith("-json"), stateless_http=mode.startswith("stateless"))
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
