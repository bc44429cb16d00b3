/**
 * A server of streams with seeded faults, for the clients of every language: `node fault-server.mjs` prints its address.
 *
 * `GET /runs/<seed>-<client>` returns `{ baseUrl, query, lastCheckedAt }`: the client follows `baseUrl` with the query until a heartbeat
 * with that time, or an error. `POST /runs/<seed>-<client>/log` takes its log as a JSON list of lines and returns `{ problems }`.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';
import { WebSocketServer } from 'ws';
import { LAST_CHECKED_AT } from './plan.mjs';
import { Run } from './run.mjs';

const SLOW_BYTES = 40;
const runs = new Map();

function runOf(name) {
  const known = runs.get(name) ?? new Run(Number.parseInt(name, 10));
  runs.set(name, known);
  return known;
}

const sockets = new WebSocketServer({ noServer: true });
const server = createServer((request, response) => {
  void answer(request, response).catch((error) => {
    process.stderr.write(`${error.stack}\n`);
    response.destroy();
  });
});

async function answer(request, response) {
  const { pathname } = new URL(request.url, 'http://server');
  const [, , name = '', ...rest] = pathname.split('/');
  const run = runOf(name);
  const route = rest.join('/');
  if (route.startsWith('api/')) {
    await sendEvents(run, request, response);
    return;
  }
  if (route === 'log') {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString('utf8'));
    sendJson(response, 200, { problems: run.judge(body) });
  } else if (route === 'sent') sendJson(response, 200, run.sent);
  else
    sendJson(response, 200, {
      baseUrl: `${address()}/runs/${name}/api`,
      query: run.query,
      lastCheckedAt: LAST_CHECKED_AT,
    });
}

/** Server-sent events. */
async function sendEvents(run, request, response) {
  const { connection, steps } = run.connect(request.headers['last-event-id']);
  const { socket } = response;
  if (connection.fault === 'reset') {
    run.ended(connection);
    socket.destroy();
    return;
  }
  if (connection.fault === 'refuse' || connection.fault === 'unauthorized') {
    run.ended(connection);
    sendRefusal(response, connection);
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
  response.flushHeaders();
  response.write('retry: 1000\n\n');
  const bytesOf = ({ type, cursor, text }) => Buffer.from(`event: ${type}\nid: ${cursor}\ndata: ${text}\n\n`);
  await sendSteps(run, { connection, steps, bytesOf, write: (bytes) => response.write(bytes) });
  run.ended(connection);
  if (connection.fault === 'end' || connection.fault === 'lagged') response.end();
  // A FIN: a reset could drop bytes that the client has not read, and the script would not know which.
  else if (connection.fault === 'cut') socket.end();
}

/** The messages of a connection. The last one is a part of a message when the connection is cut in it. */
async function sendSteps(run, { connection, steps, bytesOf, write }) {
  for (const step of steps) {
    const bytes = bytesOf(step);
    if (step.share !== undefined) {
      write(bytes.subarray(0, Math.max(1, Math.floor(bytes.length * step.share))));
      return;
    }
    // Before the write: the client may answer to the last message at once.
    run.delivered(step);
    if (connection.isSlow) await writeSlowly(bytes, write);
    else write(bytes);
  }
}

async function writeSlowly(bytes, write) {
  for (let at = 0; at < bytes.length; at += SLOW_BYTES) {
    if (at > 0) await turn();
    write(bytes.subarray(at, at + SLOW_BYTES));
  }
}

server.on('upgrade', (request, socket, head) => {
  const [, , name = ''] = request.url.split('/');
  const run = runOf(name);
  const connection = run.peek();
  if (connection.fault === 'reset' || connection.fault === 'refuse') {
    // The place of the client is not known yet.
    run.connect(undefined, { isPlaceKnown: false });
    run.ended(connection);
    if (connection.fault === 'reset') socket.destroy();
    else
      socket.end(
        `HTTP/1.1 ${connection.status} No\r\nconnection: close\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n`,
      );
    return;
  }
  sockets.handleUpgrade(request, socket, head, (webSocket) => {
    void sendFrames(run, webSocket, socket).catch((error) => {
      process.stderr.write(`${error.stack}\n`);
      socket.destroy();
    });
  });
});

/** A WebSocket with one subscription. Its bytes are written here, because the package sends whole frames only. */
async function sendFrames(run, webSocket, socket) {
  webSocket.on('error', () => undefined);
  const [data] = await once(webSocket, 'message');
  const { id, type, venue, cursor } = JSON.parse(String(data));
  if (type !== 'subscribe' || venue !== 'all') run.problems.push(`unexpected frame ${data}`);
  const { connection, steps } = run.connect(cursor);
  if (connection.fault === 'unauthorized') {
    run.ended(connection);
    webSocket.send('{"type":"error","code":"unauthorized","message":"the key is revoked"}');
    webSocket.close(4401, 'the key is revoked');
    return;
  }
  webSocket.send(JSON.stringify({ type: 'subscribed', id, seq: 0 }));
  const bytesOf = (step) =>
    frameOf(
      step.isValid === false ? step.text : `${step.text.slice(0, -1)},"subs":["${id}"],"cursor":"${step.cursor}"}`,
    );
  await sendSteps(run, { connection, steps, bytesOf, write: (bytes) => socket.write(bytes) });
  run.ended(connection);
  if (connection.fault === 'end') webSocket.close(connection.closeCode, 'restarting');
  else if (connection.fault === 'lagged') webSocket.close(4409, 'lagged');
  else if (connection.fault === 'cut') socket.end();
}

/** A text frame of a server. */
function frameOf(text) {
  const payload = Buffer.from(text);
  const head =
    payload.length < 126
      ? Buffer.from([0x81, payload.length])
      : Buffer.from([0x81, 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, payload]);
}

function sendRefusal(response, { fault, status }) {
  if (fault === 'unauthorized')
    sendJson(response, 401, { success: false, error: { code: 'unauthorized', message: 'revoked' } });
  else if (status === 502 || status === 504)
    response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
  else {
    response.setHeader('retry-after', '0');
    sendJson(response, status, {
      success: false,
      error: { code: status === 429 ? 'rate_limited' : 'not_ready', message: 'later' },
    });
  }
}

function sendJson(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(body));
}

function address() {
  return `http://127.0.0.1:${server.address().port}`;
}

server.listen(0, '127.0.0.1', () => process.stdout.write(`${address()}\n`));
// The end of the program that started it.
process.stdin.resume().on('end', () => process.exit(0));
