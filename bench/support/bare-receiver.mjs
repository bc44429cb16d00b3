import { once } from 'node:events';
import { createServer } from 'node:https';

/**
 * A TLS receiver in a process of its own. `/after/<ms>/…` answers after that time, `/dead/…` never, other paths at once. It
 * records the arrival of each event, by `webhook-id`. Its parent sends the certificate, then `{ forget: true }` to reset the records or
 * `{ until: n }` to receive them after n counted arrivals: with `quickOnly`, arrivals at `/dead` and `/after` do not count.
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
