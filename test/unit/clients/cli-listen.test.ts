import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { forward } from '../../../clients/cli/src/listen/forward.ts';
import { runCli } from '../../../clients/cli/src/run-cli.ts';
import { cliIo } from '../../support/cli-io.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';

let folder: string;
let server: Server | undefined;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'oddswire-listen-'));
});
afterEach(async () => {
  server?.closeAllConnections();
  server?.close();
  await rm(folder, { recursive: true, force: true });
});

/** `listen` at a service that sends this message. */
async function listening(message: { type: string; data: object }, cursorFile = join(folder, 'cursor.json')) {
  const made = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(`event: ${message.type}\nid: c\ndata: ${JSON.stringify(message)}\n\n`);
  });
  server = made;
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(made.address() as AddressInfo).port}`;
  const io = cliIo({ env: { ODDSWIRE_URL: url, ODDSWIRE_KEY: 'ow_live_x' } });
  return { io, code: runCli(['listen', '--cursor-file', cursorFile], io) };
}

it('forward() gives a hanging receiver up at the end of its time, also after a collection of garbage', async () => {
  const made = createServer();
  server = made;
  const asked = once(made, 'request');
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
  const verdict = forward(
    { id: 'evt_1', type: 'trade', body: '{}' },
    {
      url: `http://127.0.0.1:${(made.address() as AddressInfo).port}`,
      secret: 'a secret of sixteen',
      signal: new AbortController().signal,
      now: Date.now,
      onWaiting: async () => undefined,
      attemptMs: 500,
    },
  );
  // On a busy machine the time may pass before the request arrives.
  await Promise.race([asked, verdict]);
  await collectGarbage();
  expect(await verdict).toMatchObject({ error: 'no answer within 0.5 s' });
});

describe('oddswire-cli listen', () => {
  it.each([
    ['database_unreachable', 'the API has no answer of its database; events may be late'],
    ['commit_pending', 'a transaction that stores events lasts; events may be late'],
  ])('names the cause %s of missing heartbeats', async (reason, text) => {
    const { io, code } = await listening({ type: 'stale', data: { reason } });
    await io.until('stderr', `${text}\n`);
    io.stop();
    expect(await code).toBe(0);
  });

  it('ends with 1 and the reason when it cannot keep its position', async () => {
    // The name of the temporary file beside it is longer than a file system allows.
    const file = join(folder, 'x'.repeat(252));
    const { io, code } = await listening(
      { type: 'heartbeat', data: { checked_at: '2026-11-27T00:00:00Z', interval_seconds: 15 } },
      file,
    );
    expect(await code).toBe(1);
    expect(io.written.stderr).toContain(`oddswire-cli listen: cannot keep the position in ${file}: ENAMETOOLONG`);
  });
});
