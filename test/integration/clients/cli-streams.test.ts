import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runCli } from '../../../clients/cli/src/run-cli.ts';
import { verifyWebhook } from '../../../clients/typescript/src/index.ts';
import { insertEvents } from '../../../src/store/deliveries/events.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { aStoredPrice } from '../../factories/stored-series.ts';
import { type CliIo, cliIo } from '../../support/cli-io.ts';
import { steadyPort } from '../../support/processes/steady-port.ts';
import { aTrade, withStreams } from '../api/streams/stream-world.ts';

const world = withStreams();

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'oddswire-cli-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

let made = 0;
/** Stores an event of the account; returns its id and exact body. */
async function anEvent(type: 'price_alert' | 'balance_change' = 'price_alert') {
  made += 1;
  const id = `evt_${made}`;
  // More digits than a double has: a body that was parsed and written again would differ.
  const alert =
    '{"alertId":"a","tokenMint":"m","tokenSymbol":"Yes","condition":"above","targetPrice":1,"currentPrice":2.50}';
  const change =
    '{"wallet":"w","venue":"kalshi","tokenMint":"m","previousBalance":0,"currentBalance":12345678901234567890.5,"change":1}';
  const data = type === 'price_alert' ? alert : change;
  const body = `{"id":"${id}","type":"${type}","timestamp":"2026-01-02T03:04:05.678Z","data":${data}}`;
  const event = { id, accountId: world.client.accountId, type, body, dedupeKey: `cli:${id}` };
  await world.api.db.transaction((tx) => insertEvents(tx, [event]));
  return { id, body };
}

interface Run {
  io: CliIo;
  /** Stops it as Ctrl-C, and returns the exit code. */
  end(): Promise<number>;
}

const runs: Run[] = [];
afterEach(async () => {
  for (const run of runs.splice(0)) await run.end();
});

function start(argv: readonly string[], over: { env?: Record<string, string>; isTerminal?: boolean } = {}): Run {
  const io = cliIo({
    ...over,
    env: { ODDSWIRE_URL: world.api.url, ODDSWIRE_KEY: world.client.key, XDG_STATE_HOME: folder, ...over.env },
  });
  const code = runCli(argv, io);
  const run = {
    io,
    end() {
      io.stop();
      return code;
    },
  };
  runs.push(run);
  return run;
}

/** A receiver on a local port that records requests. */
async function aHook(status = 204, port = 0) {
  const received: { body: Buffer; headers: Record<string, string | string[] | undefined> }[] = [];
  const server: Server = createServer(async (request, response) => {
    received.push({ body: await buffer(request), headers: request.headers });
    response.writeHead(status).end();
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const { port: chosen } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${chosen}/hook`,
    received,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

const file = () => join(folder, `cursor-${Math.random()}.json`);

describe('oddswire-cli listen', () => {
  it('forwards the exact body with signatures of a printed secret, and prints the verdict', async () => {
    const hook = await aHook();
    const cursor = file();
    const { io, end } = start(['listen', '--forward', hook.url, '--cursor-file', cursor]);
    await io.until('stderr', /^signing secret: whsec_\S+$/m);
    const secret = /signing secret: (\S+)/.exec(io.written.stderr)?.[1] ?? '';
    await io.until('stderr', 'connected');
    const { id, body } = await anEvent('balance_change');
    await io.until('stdout', id);
    expect(io.written.stdout).toMatch(
      /^03:04:05\.678 {2}balance_change {2}evt_\d+ {2}kalshi w m \+1 to 12345678901234567890\.5 {2}-> 204 in \d+ ms\n$/,
    );
    const [request] = hook.received;
    expect(request?.body.toString()).toBe(body);
    const event = verifyWebhook({ payload: request?.body ?? '', headers: request?.headers ?? {}, secret });
    expect(event).toMatchObject({ id, type: 'balance_change' });
    expect(await end()).toBe(0);
    expect((await stat(cursor)).mode & 0o777).toBe(0o600);
    await hook.close();
  });

  it('continues after the last event of an earlier run, with the same secret', async () => {
    const hook = await aHook();
    const argv = ['listen', '--forward', hook.url, '--cursor-file', file()];
    const first = start(argv);
    await first.io.until('stderr', 'connected');
    const seen = await anEvent();
    await first.io.until('stdout', seen.id);
    expect(await first.end()).toBe(0);

    expect(first.io.written.stderr).toMatch(
      /\nstopped forwarding behind \S+; the same command continues there \(.*cursor-.*json\)\n$/,
    );

    const missed = [await anEvent(), await anEvent()];
    const second = start(argv);
    await second.io.until('stdout', missed[1]?.id ?? '');
    const ids = hook.received.map(({ headers }) => headers['webhook-id']);
    expect(ids).toEqual([seen.id, ...missed.map(({ id }) => id)]);
    const secretOf = ({ io }: Run) => /signing secret: (\S+)/.exec(io.written.stderr)?.[1];
    expect(secretOf(second)).toBe(secretOf(first));
    expect(second.io.written.stderr).toContain('since the last run');
    await hook.close();
  });

  it('waits while nothing listens at the address, and loses no event', async () => {
    const port = await steadyPort();
    const url = `http://127.0.0.1:${port}/hook`;
    const { io } = start(['listen', '--forward', url, '--cursor-file', file()]);
    await io.until('stderr', 'connected');
    const { id } = await anEvent();
    await io.until('stderr', `nothing listens at ${url}`);
    const hook = await aHook(204, port);
    await io.until('stdout', '-> 204');
    expect(hook.received.at(-1)?.headers).toMatchObject({ 'webhook-id': id });
    expect(Number(hook.received.at(-1)?.headers['x-webhook-attempt'])).toBeGreaterThan(1);
    await hook.close();
  });

  it('prints a rejection as the verdict and goes on, as JSON with --json', async () => {
    const hook = await aHook(500);
    const { io } = start([
      'listen',
      '--forward',
      hook.url,
      '--json',
      '--cursor-file',
      file(),
      '--events',
      'price_alert',
    ]);
    await io.until('stderr', 'connected');
    await anEvent('balance_change');
    const [one, two] = [await anEvent(), await anEvent()];
    await io.until('stdout', two.id);
    const lines = io.written.stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(
      [one, two].map(({ id }) => ({ event: { id, type: 'price_alert' }, verdict: { status: 500, isSuccess: false } })),
    );
    await hook.close();
  });

  it('prints events without forwarding them', async () => {
    const { io } = start(['listen', '--cursor-file', file()]);
    await io.until('stderr', 'printing the events');
    await io.until('stderr', 'connected');
    const { id } = await anEvent();
    await io.until('stdout', `${id}  Yes above 1: 2.5\n`);
  });

  it('reports a position of another deployment, which --from-now forgets', async () => {
    const cursor = file();
    await writeFile(cursor, JSON.stringify({ cursor: 'of-another' }));
    const failed = start(['listen', '--cursor-file', cursor]);
    await failed.io.until('stderr', '`listen --from-now` forgets it');
    expect(await failed.end()).toBe(1);
    const { io } = start(['listen', '--cursor-file', cursor, '--from-now']);
    await expect.poll(async () => JSON.parse(await readFile(cursor, 'utf8')).cursor).not.toBe('of-another');
    expect(io.written.stderr).toContain('from now on');
  });
});

describe('oddswire-cli watch', () => {
  it('shows prices, trades and the state of the stream', async () => {
    const market = await aStoredMarket(world.api.db, { title: 'Will it snow?' });
    await aStoredPrice(world.api.db, market.outcomes[0]?.tokenId ?? 0n, { price: '0.62', asOf: new Date() });
    const { io, end } = start(['watch', 'snow']);
    await io.until('stdout', /price +polymarket +Will it snow\? · Yes +0\.62/);
    await io.until('stdout', /^LIVE, /m);
    const trade = aTrade(market.marketId);
    const outcomeId = market.outcomes[0]?.outcomeId ?? '';
    await world.append({ ...trade, outcomeId });
    await io.until('stdout', /trade +polymarket +Will it snow\? · Yes +3 @ 0\.5/);
    expect(await end()).toBe(0);
    expect(io.written.stderr).toBe('stopped watching 1 market; the same command begins with the present prices\n');
  });

  it('redraws a table on a terminal, and shows a lost connection and a gap', async () => {
    const market = { market_id: 'm', venue: 'kalshi', title: 'Will it rain?', status: 'open', tags: [], outcomes: [] };
    const common = { seq: 1, at: '2026-01-02T03:04:05.678Z', venue: 'all' };
    const messages = [
      { type: 'heartbeat', ...common, data: { checked_at: common.at, interval_seconds: 15, venues: [] } },
      { type: 'gap', ...common, data: { reason: 'expired', from: 2, to: 9 } },
    ];
    const open = new Set<ServerResponse>();
    const server = createServer((request, response) => {
      if (!request.url?.includes('/stream')) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ success: true, data: market, meta: {} }));
        return;
      }
      open.add(response);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const message = messages.shift() ?? { type: 'none' };
      response.write(`event: ${message.type}\nid: c${messages.length}\ndata: ${JSON.stringify(message)}\n\n`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { io, end } = start(['watch', '--market', 'm', '--url', url], { isTerminal: true, env: { NO_COLOR: '1' } });
    await io.until('stdout', '\rLIVE, complete up to 03:04:05 UTC');
    for (const response of open) response.destroy();
    await io.until('stdout', 'SILENT (connection_lost), connecting again; complete up to 03:04:05 UTC');
    await io.until('stdout', '1 gap, the last one: expired');
    expect(await end()).toBe(0);
    expect(io.written.stdout.endsWith('\x1b[?25h')).toBe(true);
    server.closeAllConnections();
    server.close();
  });

  it('ends with 4 without a market', async () => {
    const { io, end } = start(['watch', 'no such words']);
    await io.until('stderr', 'no market');
    expect(await end()).toBe(4);
  });
});
