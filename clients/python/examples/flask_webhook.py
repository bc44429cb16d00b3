"""
A receiver with Flask: `pip install 'oddswire' flask`, then

    WEBHOOK_SECRET=whsec_... flask --app flask_webhook run --port 3000
"""

import os

from flask import Flask, Response, request

from oddswire import models, webhooks

SECRETS = os.environ["WEBHOOK_SECRET"].split()  # two during a rotation

app = Flask(__name__)
handled: set[str] = set()  # a database in production: an event may arrive again, also after a restart


@app.post("/hook")
def receive() -> Response:
    # The raw bytes: JSON that is parsed and serialized again has another signature.
    try:
        event = webhooks.verify(request.get_data(), dict(request.headers), SECRETS)
    except webhooks.WebhookError as error:
        return Response(str(error), status=400)
    if isinstance(event, models.Unknown) or event.id in handled:
        return Response(status=204)
    handled.add(event.id)
    match event:
        case models.PriceAlertEvent(data=models.PriceAlertEventDataAbove() as data):
            print(f"{data.token_symbol} {data.condition}: {data.current_price}", flush=True)
        case _:
            print(event.type, flush=True)
    return Response(status=204)
