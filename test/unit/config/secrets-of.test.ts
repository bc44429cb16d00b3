import { expect, it } from 'vitest';
import { loadConfig, secretsOf } from '../../../src/config/config.ts';

const KEYS = [Buffer.alloc(32, 1).toString('base64'), Buffer.alloc(32, 2).toString('base64')];

const needed = { DATABASE_URL: 'postgres://u@h/db', SECRETS_KEYS: `k1:${KEYS[0]},k2:${KEYS[1]}` };

it('finds every secret of a configuration, decoded from addresses', () => {
  const config = loadConfig({
    ...needed,
    DATABASE_URL: 'postgres://u:db%40password@h/db',
    REDIS_URL: 'redis-sentinel://:redis-password@h:26379/main?sentinelPassword=sentinel-password',
    VENUES: 'solana',
    SOLANA_RPC_URL: 'https://node.test/v2/0123456789abcdef0123/rpc?api-key=node-key',
    JUPITER_API_KEY: 'jupiter-key',
    ARCHIVE_DIR: '/archive',
    ARCHIVE_URL: 's3://bucket/prefix',
    ARCHIVE_S3_ACCESS_KEY_ID: 'store-key-id',
    ARCHIVE_S3_SECRET_ACCESS_KEY: 'store-secret',
    BOOTSTRAP_API_KEY: 'bootstrap-key-0123',
    OPS_PASSWORD: 'operator-password',
    OPS_VIEWER_PASSWORD: 'viewer-password',
  });
  expect(secretsOf(config).sort()).toEqual(
    [
      ...KEYS,
      'db@password',
      'redis-password',
      'sentinel-password',
      '0123456789abcdef0123',
      'node-key',
      'jupiter-key',
      'store-secret',
      'bootstrap-key-0123',
      'operator-password',
      'viewer-password',
    ].sort(),
  );
});

it('finds only the key ring when nothing else is secret', () => {
  expect(secretsOf(loadConfig(needed))).toEqual(KEYS);
  expect(secretsOf(loadConfig({ ...needed, DATABASE_URL: 'postgres://postgres:postgres@h/db' }))).toEqual(KEYS);
});
