import { describe, expect, it } from 'vitest';
import { createLogger, type Logger } from '../../../src/observe/logger.ts';

const SECRET = 'hunter2-hunter2';

function recorded(secrets: readonly string[] = []): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const log = createLogger({
    process: 'test',
    level: 'trace',
    secrets,
    destination: { write: (line) => void lines.push(line) },
  });
  return { log, lines };
}

describe('createLogger', () => {
  it('writes one JSON object a line, with the process, the level by name and the time', () => {
    const { log, lines } = recorded();
    log.child({ job: 'poll-prices' }).warn({ venue: 'x' }, 'hello\nworld');
    expect(lines).toHaveLength(1);
    expect(lines[0]?.match(/\n/g)).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      process: 'test',
      pid: process.pid,
      level: 'warn',
      job: 'poll-prices',
      venue: 'x',
      msg: 'hello\nworld',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    });
  });

  it.each([
    { secret: SECRET },
    { authorization: `Bearer ${SECRET}` },
    { apiKey: SECRET },
    { password: SECRET },
    { signature: SECRET },
    { databaseUrl: `postgres://u:${SECRET}@h/db` },
    { redisUrl: `redis://:${SECRET}@h` },
    { subscription: { secret: SECRET } },
    { config: { password: SECRET } },
    { headers: { authorization: SECRET, 'x-api-key': SECRET, cookie: SECRET } },
    { req: { headers: { authorization: SECRET, 'x-api-key': SECRET, cookie: SECRET } } },
  ])('hides the secret in %j', (fields) => {
    const { log, lines } = recorded();
    log.info(fields, 'careless');
    expect(lines[0]).toContain('[redacted]');
    expect(lines[0]).not.toContain(SECRET);
  });

  it.each([
    ['in a message', SECRET],
    ['with characters that JSON and addresses escape', 'p"ss\\wörd/with@all'],
  ])("hides the process's own secrets %s", (_where, secret) => {
    const { log, lines } = recorded([secret, 'short']);
    log.info(
      { deep: { list: [{ reason: `refused ${secret}!` }] }, err: new Error(secret) },
      `a short note about ${secret}`,
    );
    log.child({ url: `http://h/${encodeURIComponent(secret)}` }).warn('careless');
    const text = lines.join('');
    expect(text).not.toContain(secret);
    expect(text).not.toContain(JSON.stringify(secret).slice(1, -1));
    expect(text).not.toContain(encodeURIComponent(secret));
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ process: 'test' });
    expect(text).toContain('a short note about [redacted]');
  });

  it.each([
    ['ow_live_AbC123_0123456789abcdefXYZ', 'ow_live_AbC123_[redacted]'],
    ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'whsec_[redacted]'],
    ['postgres://user:pass:word@db.test:5432/x', 'postgres://[redacted]@db.test:5432/x'],
    ['https://user@host.test/path', 'https://[redacted]@host.test/path'],
    ['https://host.test/path?mail=a@b.test', 'https://host.test/path?mail=a@b.test'],
  ])('hides text that looks like a secret: %s', (text, shown) => {
    const { log, lines } = recorded();
    log.info({ list: [text] }, text);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ list: [shown], msg: shown });
  });

  it('keeps code, constraint and stack of an error, and drops its query and parameters', () => {
    const { log, lines } = recorded();
    const error = Object.assign(new Error('duplicate key'), {
      code: '23505',
      table: 'event',
      constraint: 'event_pkey',
      query: `INSERT ${SECRET}`,
      parameters: [SECRET],
      detail: SECRET,
      driverError: { parameters: [SECRET] },
    });
    log.error({ err: error }, 'failed');
    expect(lines[0]).not.toContain(SECRET);
    const { err } = JSON.parse(lines[0] ?? '');
    expect(err).toMatchObject({ type: 'Error', message: 'duplicate key', code: '23505', constraint: 'event_pkey' });
    expect(err.stack).toContain('logger.test.ts');
  });

  it('writes a line of bounded length for an error of any length', () => {
    const { log, lines } = recorded();
    const cause = new Error('y'.repeat(200_000));
    log.error({ err: new Error('x'.repeat(200_000), { cause }) }, 'failed');
    expect(lines[0]?.length).toBeLessThan(10_000);
  });

  it('names the cause of an error', () => {
    const { log, lines } = recorded();
    log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed');
    expect(lines[0]).toContain('inner');
  });
});
