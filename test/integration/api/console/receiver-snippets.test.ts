import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { LANGUAGES, type Language, receiverSnippet } from '../../../../api/pages/console/webhooks/receiver-snippets.ts';
import { signBody, standardSignature } from '../../../../src/domain/webhooks/signature.ts';
import { eventually, GUARD_MS } from '../../../support/eventually.ts';
import { isListening } from '../../../support/is-listening.ts';
import { runnerPorts } from '../../../support/processes/ports.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const PYTHON = process.env['CLIENT_PYTHON'] ?? 'python3';
const PYTHON_SOURCE = join(ROOT, 'clients/python/src');
const SECRETS = ['whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=', 'correct horse battery staple'];
const FORMER_SECRET = 'the former secret of it';
const EVENT_ID = 'evt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01';
const BODY = `{"id":"${EVENT_ID}","type":"price_alert","timestamp":"2026-01-02T03:04:05.678Z","data":{"alertId":"alert_1","tokenMint":"71","tokenSymbol":"Ż 🎲","condition":"above","targetPrice":0.65,"currentPrice":0.6500000001}}`;

/** Why a language cannot run on this machine. */
function missing(language: Language): string | undefined {
  if (language === 'go' && spawnSync('go', ['version']).status !== 0) return 'go is not on PATH';
  if (language !== 'python') return undefined;
  const python = spawnSync(PYTHON, ['-c', 'import oddswire.webhooks'], {
    env: { ...process.env, PYTHONPATH: PYTHON_SOURCE },
  });
  if (python.status === 0) return undefined;
  if (process.env['CLIENT_PYTHON'] !== undefined) throw new Error(String(python.stderr));
  return 'python3 lacks the dependencies of clients/python: set CLIENT_PYTHON';
}

/** Compiles a receiver against the client, which is built beside it as its package is. */
async function compile(directory: string, text: string): Promise<void> {
  const client = join(ROOT, 'clients/typescript');
  const target = join(directory, 'node_modules/@oddswire/client');
  await mkdir(target, { recursive: true });
  tsc('-p', join(client, 'tsconfig.build.json'), '--outDir', join(target, 'dist'));
  await copyFile(join(client, 'package.json'), join(target, 'package.json'));
  // The packages of the root have everything that the client needs.
  await symlink(join(ROOT, 'node_modules'), join(target, 'node_modules'));
  await symlink(join(ROOT, 'node_modules/@types'), join(directory, 'node_modules/@types'));
  await writeFile(join(directory, 'package.json'), '{"type":"module"}');
  await writeFile(join(directory, 'receiver.ts'), text);
  const compilerOptions = { strict: true, types: ['node'], module: 'nodenext', target: 'es2022' };
  await writeFile(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['receiver.ts'] }));
  tsc('-p', directory);
}

function tsc(...args: string[]): void {
  const { status, stdout } = spawnSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), ...args]);
  if (status !== 0) throw new Error(String(stdout));
}

const STARTS: Readonly<
  Record<Language, (directory: string, text: string) => Promise<[program: string, args: string[]]>>
> = {
  async typescript(directory, text) {
    await compile(directory, text);
    return [process.execPath, ['receiver.js']];
  },
  async python(directory, text) {
    await writeFile(join(directory, 'receiver.py'), text);
    return [PYTHON, ['receiver.py']];
  },
  async go(directory, text) {
    await writeFile(join(directory, 'main.go'), text);
    await writeFile(join(directory, 'go.mod'), 'module example.com/receiver\n\ngo 1.22\n');
    const built = spawnSync('go', ['build', '-o', 'receiver', '.'], {
      cwd: directory,
      env: { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod' },
    });
    if (built.status !== 0) throw new Error(String(built.stderr));
    expect(String(spawnSync('gofmt', ['-l', '.'], { cwd: directory }).stdout)).toBe('');
    return [join(directory, 'receiver'), []];
  },
};

interface Receiver {
  /** The status of a request, and the output of the program so far. */
  post(headers: Record<string, string>, body?: string): Promise<number>;
  output(): string;
  /** Sends the begin of a request, and closes the connection. */
  breakOff(): Promise<void>;
}

async function withReceiver(
  language: Language,
  options: Parameters<typeof receiverSnippet>[1],
  secret: string,
  use: (receiver: Receiver) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'oddswire-receiver-'));
  let child: ChildProcess | undefined;
  let output = '';
  try {
    const text = receiverSnippet(language, options);
    const [program, args] = await STARTS[language](directory, text);
    const port = Number((await runnerPorts()).PORT);
    const env = { ...process.env, PYTHONPATH: PYTHON_SOURCE, WEBHOOK_SECRET: secret, PORT: String(port) };
    child = spawn(program, args, { cwd: directory, env });
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += String(chunk)));
    await eventually(
      async () => {
        if (child?.exitCode !== null) throw new Error(`the receiver ended: ${output}`);
        return isListening(port);
      },
      (isOpen) => isOpen,
    );
    await use({
      output: () => output,
      async breakOff() {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => undefined);
        await once(socket, 'connect');
        await new Promise((written) =>
          socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc', written),
        );
        socket.resetAndDestroy();
      },
      async post(headers, body = BODY) {
        const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body });
        await answer.arrayBuffer();
        return answer.status;
      },
    });
  } finally {
    if (child?.exitCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await rm(directory, { recursive: true, force: true });
  }
}

/** The headers of a request as oddswire signs it. */
function signed(secrets: readonly [string, ...string[]], atSeconds = Math.floor(Date.now() / 1_000)) {
  return {
    'webhook-id': EVENT_ID,
    'webhook-timestamp': String(atSeconds),
    'webhook-signature': standardSignature(secrets, EVENT_ID, atSeconds, BODY),
    'x-webhook-signature': signBody(secrets[0], BODY),
    'x-webhook-skipped': 'evt_skipped_1,evt_skipped_2',
  };
}

describe.each(LANGUAGES)('the receiver in %s', (language) => {
  const reason = missing(language);
  it.skipIf(reason !== undefined).each([
    ['standard', SECRETS[0] ?? ''],
    ['standard', SECRETS[1] ?? ''],
    ['body', SECRETS[0] ?? ''],
  ] as const)(
    `accepts signed requests (%s, %s) and rejects forged ones${reason === undefined ? '' : `: ${reason}`}`,
    async (signature, secret) => {
      const options = { signature, events: ['price_alert', 'transaction'], isOrdered: true } as const;
      await withReceiver(language, options, secret, async ({ post, output, breakOff }) => {
        const good = signed([secret]);
        expect(await post(good)).toBe(204);
        await eventually(
          async () => output(),
          (text) => text.includes(`price_alert ${EVENT_ID}`) && text.includes('evt_skipped_1'),
        );
        const now = Math.floor(Date.now() / 1_000);
        const forged: [string, Record<string, string>, string?][] = [
          ['another secret', signed([FORMER_SECRET])],
          ['another body', good, BODY.replace('0.65,', '0.66,')],
          ['no signature', { 'webhook-id': EVENT_ID, 'webhook-timestamp': String(now) }],
          ['an empty signature', { ...good, 'webhook-signature': '', 'x-webhook-signature': '' }],
        ];
        if (signature === 'standard') {
          expect(await post({ ...signed([FORMER_SECRET, secret]), 'x-webhook-signature': 'sha256=0' })).toBe(204);
          forged.push(
            ['an old timestamp', signed([secret], now - 400)],
            ['a timestamp in the future', signed([secret], now + 400)],
            ['another timestamp', { ...good, 'webhook-timestamp': String(now - 5) }],
            ['another id', { ...good, 'webhook-id': 'evt_2' }],
            ['a text as timestamp', { ...good, 'webhook-timestamp': 'now' }],
          );
        }
        for (const [name, headers, body] of forged) expect([name, await post(headers, body)]).toEqual([name, 400]);
        await breakOff();
        expect(await post(good)).toBe(204);
      });
    },
    GUARD_MS,
  );
});

it('no receiver has a secret, and each names the events of its webhook', () => {
  for (const language of LANGUAGES) {
    for (const signature of ['standard', 'body'] as const) {
      const text = receiverSnippet(language, { signature, events: ['trade', 'test'], isOrdered: false });
      expect(text).toContain('trade, test');
      expect(text).toContain('WEBHOOK_SECRET');
      expect(text.toLowerCase()).not.toContain('x-webhook-skipped');
      expect(text).not.toMatch(/whsec_[A-Za-z0-9+/]{4}/);
    }
  }
});
