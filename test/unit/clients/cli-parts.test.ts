import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { completionScript } from '../../../cli/completion.ts';
import { cut, widthOf } from '../../../cli/table.ts';
import { COMMANDS } from '../../../clients/cli/src/commands.ts';
import { signedHeaders } from '../../../clients/cli/src/listen/forward.ts';
import { readUpTo } from '../../../clients/cli/src/rows.ts';
import { printable } from '../../../src/domain/values/text.ts';
import { generateSecret, verifyBody, verifyStandard } from '../../../src/domain/webhooks/signature.ts';
import { signatureVectors } from '../../support/signature-vectors.ts';

const run = promisify(execFile);

describe('signedHeaders', () => {
  it.each(signatureVectors.map((vector) => [vector.name, vector] as const))('signs the vector: %s', (_name, vector) => {
    const [secret = ''] = vector.secrets;
    const event = { id: vector.id, type: 'price_alert', body: vector.body };
    const headers = signedHeaders(secret, event, { attempt: 2, nowMs: vector.timestampSeconds * 1_000, version: '1' });
    expect(headers['X-Webhook-Signature']).toBe(vector.headers['X-Webhook-Signature']);
    expect(vector.headers['webhook-signature'].split(' ')).toContain(headers['webhook-signature']);
  });

  it('passes the verifiers of the service with a generated secret', () => {
    const secret = generateSecret();
    const event = { id: 'evt_1', type: 'transaction', body: '{"id":"evt_1","data":{"é":1}}' };
    const headers = signedHeaders(secret, event, { attempt: 1, nowMs: 1_000_000, version: '1' });
    expect(verifyBody(secret, event.body, headers['X-Webhook-Signature'] ?? '')).toBe(true);
    const delivery = {
      id: 'evt_1',
      timestamp: '1000',
      signature: headers['webhook-signature'] ?? '',
      body: event.body,
    };
    expect(verifyStandard([secret], delivery, 1_000)).toBe('ok');
    expect(headers).toMatchObject({
      'X-Webhook-Event': 'transaction',
      'X-Webhook-Attempt': '1',
      'webhook-id': 'evt_1',
    });
  });
});

describe('readUpTo', () => {
  const items = Array.from({ length: 2_500 }, (_, at) => at);
  const read = async ({ limit, cursor = '0' }: { limit: number; cursor?: string }) => {
    const end = Number(cursor) + limit;
    return { data: items.slice(Number(cursor), end), meta: { next_cursor: end < items.length ? String(end) : null } };
  };

  it('reads as many pages as the limit needs, and returns the cursor behind them', async () => {
    const page = await readUpTo(1_200, undefined, read);
    expect([page.data.length, page.data.at(-1), page.meta.next_cursor]).toEqual([1_200, 1_199, '1200']);
  });

  it('ends with the list, and continues at a cursor', async () => {
    const page = await readUpTo(9_999, '2400', read);
    expect(page).toEqual({ data: items.slice(2_400), meta: { next_cursor: null } });
  });
});

describe('foreign text', () => {
  it('cannot control the terminal', () => {
    expect(printable('a\x1b[2Jb\u202ec\nd')).toBe('a\ufffd[2Jb\ufffdc\ufffdd');
    expect(cut('Zürich 🚀🚀', 8)).toBe('Zürich …');
    expect([widthOf('雪'), widthOf('e\u0301'), cut('雪雪雪', 4)]).toEqual([2, 1, '雪…']);
  });
});

describe('completionScript', () => {
  /** The words that bash offers for a line whose last word is unfinished. */
  async function bashOffers(
    line: string,
    { listed, PATH }: { listed?: { sign: string; call: string }; PATH?: string } = {},
  ): Promise<string[]> {
    const words = line.split(' ');
    const script = `${completionScript('bash', 'oddswire-cli', COMMANDS, listed)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_oddswire_cli; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await run('bash', ['-c', script], {
      env: { ...process.env, ...(PATH !== undefined && { PATH }) },
    });
    return stdout.split('\n').filter((word) => word !== '');
  }

  it('completes commands, verbs, options and choices in bash', async () => {
    expect(await bashOffers('oddswire-cli ma')).toEqual(['markets', 'market']);
    expect(await bashOffers('oddswire-cli alerts c')).toEqual(['create']);
    expect(await bashOffers('oddswire-cli candles m --int')).toEqual(['--interval']);
    expect(await bashOffers('oddswire-cli candles m --interval 1')).toEqual(['1m', '15m', '1h', '1d']);
  });

  it('completes the words that the program lists behind their sign in bash', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'oddswire-completion-'));
    try {
      const text = '#!/bin/sh\nprintf "+abc1234\\tOne\\n+xyz1234\\tTwo\\n"\n';
      await writeFile(join(folder, 'oddswire-cli'), text, { mode: 0o755 });
      const listed = { sign: '+', call: 'completion ids' };
      const PATH = `${folder}:${process.env['PATH']}`;
      expect(await bashOffers('oddswire-cli book +a', { listed, PATH })).toEqual(['+abc1234']);
      expect(await bashOffers('oddswire-cli book +', { listed, PATH })).toEqual(['+abc1234', '+xyz1234']);
      expect(await bashOffers('oddswire-cli book --ou', { listed, PATH })).toEqual(['--outcome']);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it.each(['zsh', 'fish'] as const)('names every command, verb and option for %s', (shell) => {
    const script = completionScript(shell, 'oddswire-cli', COMMANDS, { sign: '+', call: 'completion ids' });
    expect(script).toContain('oddswire-cli completion ids');
    for (const [name, { options, verbs = [] }] of Object.entries(COMMANDS)) {
      expect(script).toContain(name);
      for (const option of Object.keys(options))
        expect(script).toContain(shell === 'zsh' ? `--${option}` : `-l ${option}`);
      expect(script).toContain(verbs.join(' '));
    }
    // An odd number of quotes would end the script early.
    expect(script.replaceAll("'\\''", '').split("'").length % 2).toBe(1);
  });
});
