// A receiver that verifies deliveries. A proxy in front of it must terminate TLS, because the service sends over HTTPS only.
//   WEBHOOK_SECRET=whsec_... PORT=3000 npm run example:webhook
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { OddswireWebhookError, verifyWebhook } from '@oddswire/client';

const { WEBHOOK_SECRET: secret, PORT = '3000' } = process.env;
if (secret === undefined) throw new Error('set WEBHOOK_SECRET to the secret from the answer of webhooks.create');

createServer(async (request, response) => {
  try {
    const event = verifyWebhook({ payload: await buffer(request), headers: request.headers, secret });
    if (event.type === 'price_alert' && 'currentPrice' in event.data) {
      console.log(`${event.data.tokenSymbol} is at ${event.data.currentPrice}`);
    } else console.log(`${event.type} ${event.id}`);
    response.writeHead(204).end();
  } catch (error) {
    response.writeHead(error instanceof OddswireWebhookError ? 400 : 500).end();
  }
}).listen(Number(PORT), '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${PORT}`));
