import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { delivery, SECRET, testSender } from './deliveries.ts';

/** From the build, as the demo runs it. */
const PROGRAM = fileURLToPath(new URL('../../../dist/sim/receiver-main.js', import.meta.url));
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'oddswire-receiver-main-'));
});
afterAll(() => rm(directory, { recursive: true }));

function start(args: string[], env: Record<string, string> = {}) {
  const child = fork(PROGRAM, ['--ca-dir', directory, ...args], { silent: true, env: { ...process.env, ...env } });
  const output = { text: '', errors: '' };
  child.stdout?.on('data', (chunk) => {
    output.text += chunk;
  });
  child.stderr?.on('data', (chunk) => {
    output.errors += chunk;
  });
  const streams = Promise.all([child.stdout, child.stderr].map((stream) => stream && once(stream, 'close')));
  return { child, output, streams };
}

async function ready(child: ChildProcess): Promise<{ url: string; caFile: string }> {
  const [message] = await once(child, 'message');
  expect(message).toMatchObject({ type: 'ready' });
  return message;
}

/** The exit code, after all output. The child's own `close` event does not fire after a `disconnect`. */
async function ended({ child, streams }: ReturnType<typeof start>): Promise<number | null> {
  const exited = child.exitCode === null ? once(child, 'exit') : Promise.resolve();
  await Promise.all([exited, streams]);
  return child.exitCode;
}

/** Sends one event to a started receiver and returns the line that it prints. */
async function printed(started: ReturnType<typeof start>, more: Parameters<typeof delivery>[1] = {}): Promise<string> {
  const { url, caFile } = await ready(started.child);
  const sender = await testSender({ extraCaPem: await readFile(caFile, 'utf8') });
  started.output.text = '';
  for (let turn = 0; turn < 2; turn += 1) {
    expect(await sender.send(delivery(url, { ...more, attemptNumber: turn + 1 }))).toMatchObject({ kind: 'delivered' });
  }
  await sender.close();
  await expect.poll(() => started.output.text.split('\n').length).toBe(3);
  return started.output.text;
}

describe('receiver-main', () => {
  const body = JSON.stringify({
    id: 'evt_1',
    type: 'price_alert',
    timestamp: '2026-01-02T03:04:05.678Z',
    data: { alertId: 'alert_1', currentPrice: 0.65, note: 'a\u001b[2Jb' },
  });

  it('prints one line per event, marks repeats, and ends on SIGTERM', async () => {
    const started = start([], { RECEIVER_SECRET: SECRET });
    const [first = '', second = ''] = (await printed(started, { body })).split('\n');
    expect(first).toMatch(
      /^\d\d:\d\d:\d\d\.\d{3} {2}price_alert +evt_1 {2}alertId=alert_1 {2}currentPrice=0\.65 {2}note=a\?\[2Jb {2}attempt 1 {2}X-Webhook-Signature ok {2}webhook-signature ok$/,
    );
    expect(second).toMatch(/attempt 2 .* webhook-signature ok {2}DUPLICATE$/);
    started.child.kill('SIGTERM');
    expect(await ended(started)).toBe(0);
  });

  it('prints one JSON object per event with --json', async () => {
    const started = start(['--json'], { RECEIVER_SECRET: SECRET });
    const lines = (await printed(started, { body })).trimEnd().split('\n');
    const common = { type: 'price_alert', id: 'evt_1', bodySignature: 'ok', standardSignature: 'ok' };
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { event: { ...common, attempt: '1', isDuplicate: false, data: { currentPrice: 0.65 } } },
      { event: { ...common, attempt: '2', isDuplicate: true } },
    ]);
    started.child.kill('SIGTERM');
    expect(await ended(started)).toBe(0);
  });

  it('knows the secret for requests to the signed path only', async () => {
    for (const [path, verdict] of [
      ['/mine/', 'unchecked'],
      ['/', 'ok'],
    ] as const) {
      const started = start(['--signed-path', path], { RECEIVER_SECRET: SECRET });
      expect(await printed(started)).toContain(`X-Webhook-Signature ${verdict}`);
      started.child.kill('SIGTERM');
      expect(await ended(started)).toBe(0);
    }
  });

  it('reads secrets from a file that is written later, prints BAD, and ends with its parent', async () => {
    const secretFile = join(directory, 'secrets');
    const started = start(['--secret-file', secretFile]);
    expect(await printed(started)).toContain('X-Webhook-Signature unchecked');
    await writeFile(secretFile, 'not the right secret\n');
    started.child.disconnect();
    expect(await ended(started)).toBe(0);

    const again = start(['--secret-file', secretFile]);
    expect(await printed(again)).toContain('X-Webhook-Signature BAD  webhook-signature BAD');
    again.child.kill('SIGINT');
    expect(await ended(again)).toBe(0);
  });

  it('prints one line and exits with 1 on a taken port', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const started = start(['--port', String(port)]);
    expect(await ended(started)).toBe(1);
    expect(started.output).toEqual({ text: '', errors: `receiver: port ${port} is already taken\n` });
    other.close();
  });

  it.each([
    [['--port', 'http'], '"http" is not a port'],
    [['--nonsense'], 'nonsense'],
  ])('prints one line and exits with 1 on %j', async (args, why) => {
    const started = start(args);
    expect(await ended(started)).toBe(1);
    expect(started.output.errors).toContain(why);
    expect(started.output.errors.trimEnd().split('\n')).toHaveLength(1);
  });
});
