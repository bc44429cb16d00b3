import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '../../../../clients/typescript/src/index.ts';
import { eventually } from '../../../support/eventually.ts';
import { isListening } from '../../../support/is-listening.ts';
import { endWithThisProcess } from '../../../support/processes/orphan-guard.ts';
import { steadyPort } from '../../../support/processes/steady-port.ts';
import { ofType, type SseEvent } from '../../../support/sse.ts';
import { aPrice, aTrade, withStreams } from './stream-world.ts';

const world = withStreams();
const hasNginx = spawnSync('nginx', ['-v']).status === 0;

/** An nginx that closes connections without data: on the first port after some seconds, on the second one between two heartbeats. */
async function startNginx(folder: string, ports: readonly [number, number], upstream: string): Promise<ChildProcess> {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
     http { access_log off; ${paths.join(' ')}
       map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
       proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_set_header Upgrade $http_upgrade;
       proxy_set_header Connection $connection_upgrade;
       server { listen 127.0.0.1:${ports[0]}; location / { proxy_pass ${upstream}; proxy_read_timeout 3s; } }
       server { listen 127.0.0.1:${ports[1]}; location / { proxy_pass ${upstream}; proxy_read_timeout 100ms; } } }`,
  );
  const child = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], { stdio: 'ignore' });
  endWithThisProcess(child);
  return child;
}

describe.skipIf(!hasNginx)('behind an nginx that closes idle connections', () => {
  let nginx: ChildProcess;
  let folder: string;
  let url: string;
  let impatientUrl: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'oddswire-nginx-'));
    const ports = [await steadyPort(), await steadyPort()] as const;
    [url, impatientUrl] = ports.map((port) => `http://127.0.0.1:${port}`) as [string, string];
    nginx = await startNginx(folder, ports, world.api.url);
    await eventually(() => isListening(ports[1]), Boolean);
  });
  afterAll(async () => {
    nginx?.kill('SIGTERM');
    await rm(folder, { recursive: true, force: true });
  });

  it('a quiet stream stays open by its heartbeats, and changes arrive at once', async () => {
    const stream = await world.follow('channels=books,prices', {}, { url });
    const checkedAt = ({ data }: SseEvent) => Date.parse(String(data.data['checked_at']));
    const first = checkedAt(await stream.next(ofType('heartbeat')));
    // Longer than nginx waits.
    await stream.next((event) => event.event === 'heartbeat' && checkedAt(event) > first + 4_000);
    const seq = await world.append(aPrice());
    expect((await stream.next(ofType('price'))).data.seq).toBe(seq);
  });

  it('a WebSocket works', async () => {
    const socket = await world.connect({ url });
    socket.send({ type: 'subscribe', id: 'a', venue: 'all', channels: ['prices'] });
    await socket.next(({ type }) => type === 'heartbeat');
    const seq = await world.append(aPrice());
    expect((await socket.next(({ type }) => type === 'price')).seq).toBe(seq);
  });

  it('a stream that nginx closes again and again resumes without a lost or repeated change', async () => {
    const client = createClient({ baseUrl: impatientUrl, apiKey: world.client.key });
    const messages = client.stream({ channels: ['trades'] }, { maxDelayMs: 20 });
    await messages.next();
    const start = await world.append();
    const [trades, wanted]: number[][] = [[], []];
    let losses = 0;
    const appending = (async () => {
      for (let i = 1; i <= 40; i++) {
        await world.append(aTrade());
        wanted?.push(start + i);
      }
    })();
    for await (const message of messages) {
      if (message.type === 'silent') losses += 1;
      if (message.type === 'trade') trades?.push(message.seq);
      if (message.type === 'trade' && message.seq === start + 40 && losses > 0) break;
      if (losses === 3 && trades?.length === 40) break;
    }
    await appending;
    expect(trades).toEqual(wanted);
  });
});
