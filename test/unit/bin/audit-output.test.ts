import { afterEach, expect, it, vi } from 'vitest';
import { createAuditOutput } from '../../../bin/audit/output.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

it('the lines of the audit have no control character of an id', async () => {
  const written: string[] = [];
  vi.spyOn(process.stdout, 'write').mockImplementation(((text: string, done: () => void) => {
    written.push(text);
    done();
    return true;
  }) as typeof process.stdout.write);
  await createAuditOutput({ json: false, limit: 1 }).difference(
    () => 'market\x1b[2J 1h',
    () => ({}),
  );
  expect(written).toEqual(['market\ufffd[2J 1h\n']);
});
