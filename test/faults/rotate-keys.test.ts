import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newId } from '../../src/domain/values/ids.ts';
import { EXIT_CONFIG } from '../../src/runtime/lifecycle.ts';
import { oddswire } from '../integration/bin/run-command.ts';
import { eventually } from '../support/eventually.ts';
import { pageText } from '../support/markdown.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import {
  API_KEY,
  OddswireProcess,
  type ProcessName,
  type Surroundings,
  startSurroundings,
  WEBHOOK_SECRET,
} from '../support/processes/system.ts';

const [OLD, NEW] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
const FIRST_RING = `k1:${OLD}`;
/** Two of each process that opens or makes sealed values. */
const PLACES: readonly ProcessName[] = ['api', 'deliverer', 'api', 'deliverer'];

/** The lines of the runbook in docs/operations.md, by step. */
function stepsOfRunbook(): string[][] {
  const section = pageText('docs/operations.md').split('\n## Rotate SECRETS_KEYS\n')[1]?.split('\n## ')[0] ?? '';
  const blocks = [...section.matchAll(/^```sh rotation\n([\s\S]*?)^```$/gm)];
  return blocks.map(([, text = '']) => text.trim().split('\n'));
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly isReplay: boolean;
}

/** A write whose answer is kept. */
interface Kept {
  readonly path: string;
  readonly key: string;
  readonly body: object;
  readonly text: string;
}

let database: TestDatabase;
let surroundings: Surroundings;
let processes: { process: OddswireProcess; address: string }[] = [];
const lines: string[] = [];
const kept: Kept[] = [];
const webhooks: string[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  surroundings = await startSurroundings({ databaseUrl: database.url, exchange: { paused: true } });
  processes = await Promise.all(PLACES.map((name) => start(name, FIRST_RING)));
});
afterAll(async () => {
  await Promise.all(processes.map(({ process }) => process.end('SIGTERM')));
  await surroundings?.close();
  await database?.drop();
});

function processWith(name: ProcessName, ring: string): OddswireProcess {
  const environment = { ...surroundings.environment, SECRETS_KEYS: ring };
  return new OddswireProcess(name, environment, { line: (text) => lines.push(text) });
}

async function start(name: ProcessName, ring: string) {
  const process = processWith(name, ring);
  const { address = '' } = await process.start();
  return { process, address };
}

const apis = () => processes.filter(({ process }) => process.name === 'api' && process.isRunning);

async function post(address: string, path: string, key: string, body: object): Promise<Answer> {
  const response = await fetch(address + path, {
    method: 'POST',
    headers: { 'X-API-Key': API_KEY, 'Content-Type': 'application/json', 'Idempotency-Key': key },
    body: JSON.stringify(body),
  });
  const isReplay = response.headers.get('idempotent-replayed') === 'true';
  return { status: response.status, text: await response.text(), isReplay };
}

async function write(address: string, path: string, body: object): Promise<{ id: string }> {
  const key = newId('req');
  const { status, text } = await post(address, path, key, body);
  expect([status < 300, text]).toEqual([true, text]);
  kept.push({ path, key, body, text });
  return (JSON.parse(text) as { data: { id: string } }).data;
}

/** A webhook with a previous secret, so that every sealed column has a value. */
async function makeWebhook(address: string): Promise<void> {
  const { id } = await write(address, '/v1/webhooks', {
    url: `${surroundings.receiver.url}/${newId('req')}`,
    events: ['price_alert'],
    secret: 'the secret before the rotation',
  });
  await write(address, `/v1/webhooks/${id}/rotate-secret`, { secret: WEBHOOK_SECRET });
  webhooks.push(id);
}

/** Each API replays every kept answer and makes a webhook, and each webhook receives an event. */
async function expectService(): Promise<void> {
  for (const { address } of apis()) await makeWebhook(address);
  for (const { address } of apis()) {
    for (const { path, key, body, text } of kept) {
      expect(await post(address, path, key, body)).toEqual({ status: expect.any(Number), text, isReplay: true });
    }
  }
  const { receiver } = surroundings;
  const before = receiver.requests.length;
  const [{ address = '' } = {}] = apis();
  const sent = await Promise.all(webhooks.map((id) => write(address, `/v1/webhooks/${id}/test`, {})));
  const arrived = () => receiver.requests.slice(before).map(({ headers }) => headers['x-webhook-delivery']);
  await eventually(
    async () => arrived(),
    (ids) => sent.every(({ id }) => ids.includes(id)),
  );
  for (const { bodySignature, standardSignature } of receiver.requests.slice(before)) {
    expect([bodySignature, standardSignature]).toEqual(['ok', 'ok']);
  }
}

/** Restarts the processes in two halves, each while the other half serves. */
async function roll(ring: string): Promise<void> {
  for (const half of [0, 1]) {
    const [from, to] = [(half * PLACES.length) / 2, ((half + 1) * PLACES.length) / 2];
    const stopping = processes.slice(from, to);
    expect(await Promise.all(stopping.map(({ process }) => process.end('SIGTERM')))).toEqual(stopping.map(() => 0));
    await expectService();
    const started = await Promise.all(PLACES.slice(from, to).map((name) => start(name, ring)));
    processes.splice(from, to - from, ...started);
    await expectService();
  }
}

describe('the runbook for a new key', () => {
  it('has three steps', () => {
    expect(stepsOfRunbook().map(([line]) => line)).toEqual([
      'SECRETS_KEYS=k1:$OLD,k2:$NEW',
      'SECRETS_KEYS=k2:$NEW,k1:$OLD',
      'SECRETS_KEYS=k2:$NEW',
    ]);
  });

  it('keeps replays and deliveries working at every step, with processes of two steps side by side', async () => {
    await expectService();
    let ring = FIRST_RING;
    for (const line of stepsOfRunbook().flat()) {
      const [, assigned] = /^SECRETS_KEYS=(.*)$/.exec(line) ?? [];
      if (assigned !== undefined) {
        ring = assigned.replace('$OLD', OLD).replace('$NEW', NEW);
        await roll(ring);
        continue;
      }
      const [program, ...argv] = line.split(' ');
      expect(program).toBe('oddswire');
      const { code, stdout } = await oddswire(argv, { DATABASE_URL: database.url, SECRETS_KEYS: ring });
      expect([line, code, stdout]).toEqual([line, 0, stdout]);
      await expectService();
    }
    expect(ring).toBe(`k2:${NEW}`);
    const { stdout } = await oddswire(['keys', 'sealed', '--json'], { DATABASE_URL: database.url });
    const counts = JSON.parse(stdout) as { kid: string; rows: number }[];
    expect(counts.map(({ kid }) => kid)).toEqual(counts.map(() => 'k2'));
    expect(counts).toHaveLength(4);
    expect(lines.filter((line) => /"level":"(?:error|fatal)"/.test(line))).toEqual([]);
  });

  it.each(PLACES.slice(0, 2))('refuses the start of the process %s without a key in use', async (name) => {
    const refused = processWith(name, `k3:${randomBytes(32).toString('base64')}`);
    await expect(refused.start()).rejects.toThrow(`ended (${EXIT_CONFIG})`);
    expect(refused.lines.join('\n')).toMatch(/SECRETS_KEYS .*"k2" \(.*webhook_subscription\.sealed_secret/);
  });

  it('refuses the start of a process with other bytes under a known key id', async () => {
    const refused = processWith('deliverer', `k2:${randomBytes(32).toString('base64')}`);
    await expect(refused.start()).rejects.toThrow(`ended (${EXIT_CONFIG})`);
  });
});
