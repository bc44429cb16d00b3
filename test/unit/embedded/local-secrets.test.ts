import { chmod, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseSecretsKeys } from '../../../src/domain/values/secret-keys.ts';
import { localSecretsKeys } from '../../../src/embedded/local-secrets.ts';
import { createLogger } from '../../../src/observe/logger.ts';

let dataDir: string;
let lines: string[];
const log = createLogger({ process: 'test', level: 'debug', destination: { write: (line) => lines.push(line) } });

beforeEach(async () => {
  lines = [];
  dataDir = join(await mkdtemp(join(tmpdir(), 'oddswire-secrets-')), 'data');
});

afterEach(() => rm(join(dataDir, '..'), { recursive: true, force: true }));

describe('localSecretsKeys', () => {
  it('creates a ring once, readable only by its owner', async () => {
    const ring = await localSecretsKeys(dataDir, log);
    expect(parseSecretsKeys(ring)).toMatchObject([{ kid: 'local' }]);
    expect(await localSecretsKeys(dataDir, log)).toBe(ring);
    expect((await stat(join(dataDir, 'secrets.key'))).mode & 0o777).toBe(0o600);
    expect(await readdir(dataDir)).toEqual(['secrets.key']);
  });

  it('makes a file private that others can read, and logs it without the secret', async () => {
    const ring = await localSecretsKeys(dataDir, log);
    const path = join(dataDir, 'secrets.key');
    await chmod(path, 0o644);
    expect(await localSecretsKeys(dataDir, log)).toBe(ring);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 'warn', path, mode: '644' }]);
    expect(lines.join()).not.toContain((await readFile(path, 'utf8')).trim());
  });
});
