import { readFile } from 'node:fs/promises';
import type { Config } from '../../src/config/config.ts';
import { type KalshiKey, readKalshiKey } from '../../src/venues/kalshi/feed/key.ts';

/** The key of the configuration; undefined without one. @throws Error without any part of the key in its message */
export async function kalshiKeyOf({ kalshiKey }: Pick<Config['feeds'], 'kalshiKey'>): Promise<KalshiKey | undefined> {
  return kalshiKey && readKalshiKey(kalshiKey.id, await readFile(kalshiKey.file, 'utf8'));
}
