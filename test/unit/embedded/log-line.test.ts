import { describe, expect, it } from 'vitest';
import { formatChildLine } from '../../../src/embedded/log-line.ts';

const RECORD = JSON.stringify({
  level: 'warn',
  time: '2026-08-01T12:34:56.789Z',
  process: 'api',
  pid: 7,
  status: 503,
  route: '/v1/x',
  err: { message: 'no database', stack: 'at ...' },
  msg: 'not ready',
});

describe('formatChildLine', () => {
  it('passes log records unchanged for machines', () => {
    expect(formatChildLine('api', RECORD, false)).toBe(RECORD);
  });

  it('shortens log records for people', () => {
    expect(formatChildLine('api', RECORD, true)).toBe(
      '12:34:56 api        warn  not ready status=503 route=/v1/x error=no database',
    );
  });

  it('names the process of the record, because a child may run several', () => {
    expect(formatChildLine('small', RECORD, true)).toContain('12:34:56 api ');
  });

  it('prints no control character of a field for people', () => {
    const record = JSON.stringify({ level: 'warn', msg: 'rejected', title: 'Rain\u001b[2J' });
    expect(formatChildLine('poller', record, true)).toContain('title=Rain\ufffd[2J');
  });

  it.each(['plain text', '{"level":"info"}', '{broken', '{"a":1}', ''])('prefixes %j with the name', (line) => {
    expect(formatChildLine('api', line, false)).toBe(`api        | ${line}`);
    expect(formatChildLine('api', line, true)).toBe(`api        | ${line}`);
  });
});
