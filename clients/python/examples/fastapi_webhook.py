"""
A receiver with FastAPI: `pip install 'oddswire' fastapi uvicorn`, then

    WEBHOOK_SECRET=whsec_... uvicorn fastapi_webhook:app --port 3000
"""

import os

from fastapi import FastAPI, Request, Response

from oddswire import models, webhooks

SECRETS = os.environ["WEBHOOK_SECRET"].split()  # two during a rotation

app = FastAPI()
handled: set[str] = set()  # a database in production: an event may arrive again, also after a restart


@app.post("/hook")
async def receive(request: Request) -> Response:
    # The raw bytes: JSON that is parsed and serialized again has another signature.
    try:
        event = webhooks.verify(await request.body(), request.headers, SECRETS)
    except webhooks.WebhookError as error:
        return Response(str(error), status_code=400)
    if isinstance(event, models.Unknown) or event.id in handled:
        return Response(status_code=204)
    handled.add(event.id)
    match event:
        case models.PriceAlertEvent(data=models.PriceAlertEventDataAbove() as data):
            print(f"{data.token_symbol} {data.condition}: {data.current_price}", flush=True)
        case _:
            print(event.type, flush=True)
    return Response(status_code=204)
