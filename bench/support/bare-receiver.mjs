import { once } from 'node:events';
import { createServer } from 'node:https';

/**
 * A TLS receiver in a process of its own. `/after/<ms>/…` answers that much later, `/dead/…` never, anything else at once. It
 * notes when each event arrived, by `webhook-id`. Its parent sends the certificate, then `{ forget: true }` to begin anew or
 * `{ until: n }` to be told the arrivals once there are n that count: those of `/dead` and `/after` do not with `quickOnly`.
 */
let arrivals = [];
let wanted;

function report() {
  if (wanted === undefined || arrivals.length < wanted.until) return;
  wanted = undefined;
  process.send({ arrivals });
}

process.on('disconnect', () => process.exit(0));
const [{ certificate, quickOnly }] = await once(process, 'message');
let countsOnlyQuick = quickOnly;
process.on('message', (message) => {
  if (message.forget) {
    arrivals = [];
    countsOnlyQuick = message.quickOnly ?? false;
    process.send({ forgotten: true });
    return;
  }
  wanted = message;
  report();
});

const server = createServer(certificate, (request, response) => {
  const [, kind, delayMs] = request.url.split('/');
  request.resume().once('end', () => {
    if (!countsOnlyQuick || kind === 'hook') arrivals.push([request.headers['webhook-id'], Date.now()]);
    report();
    if (kind === 'dead') return;
    const answer = () => response.end('{"received":true}');
    if (kind === 'after') setTimeout(answer, Number(delayMs));
    else answer();
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
