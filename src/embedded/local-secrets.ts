import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Logger } from '../observe/logger.ts';
import { loadOrCreateSecret } from './private-file.ts';

/**
 * `SECRETS_KEYS` of an installation with an embedded database: `local:base64(32 bytes)`, generated once and kept in
 * `DATA_DIR/secrets.key` (mode 600). Without that file the sealed secrets of the database cannot be opened.
 */
export function localSecretsKeys(dataDir: string, log: Logger): Promise<string> {
  return loadOrCreateSecret(join(dataDir, 'secrets.key'), () => `local:${randomBytes(32).toString('base64')}`, log);
}
