import type { Config } from './config.ts';
import { parseRedisUrl } from './redis-address.ts';

/** A part of a node's address with at least this length is a key: providers put keys into the path or the query. */
const MIN_PATH_KEY_LENGTH = 16;

/** Every secret of the configuration, so that logs and errors can hide them. Trivial values are skipped. */
export function secretsOf(config: Config): string[] {
  const { databaseUrl, databaseDirectUrl, databaseMigrateUrl, queues, venueUrls, bootstrapApiKey, secretsKeys, ops } =
    config;
  const { archive } = config;
  const { proxyUrl } = config.webhooks;
  const redis = queues.redisUrl === undefined ? undefined : parseRedisUrl(queues.redisUrl);
  const found = [
    ...passwordsOf(databaseUrl),
    ...passwordsOf(databaseDirectUrl),
    ...(databaseMigrateUrl === undefined ? [] : passwordsOf(databaseMigrateUrl)),
    ...(proxyUrl === undefined ? [] : passwordsOf(proxyUrl)),
    redis?.password,
    redis?.kind === 'sentinel' ? redis.sentinelLogin.password : undefined,
    ...(venueUrls.solana.rpc === undefined ? [] : keysIn(venueUrls.solana.rpc)),
    venueUrls.solana.jupiterKey,
    archive.store.secretAccessKey,
    bootstrapApiKey,
    ...secretsKeys.map(({ key }) => Buffer.from(key).toString('base64')),
    ...Object.values(ops.passwords),
  ];
  return [...new Set(found.filter((secret) => secret !== undefined && secret !== ''))] as string[];
}

/** A password equal to the user name, common on developer machines, would hide every occurrence of that word. */
function passwordsOf(url: string): string[] {
  const { username, password } = new URL(url);
  return password === username ? [] : [decodeURIComponent(password)];
}

function keysIn(url: string): string[] {
  const { pathname, searchParams } = new URL(url);
  const inPath = pathname.split('/').filter((part) => part.length >= MIN_PATH_KEY_LENGTH);
  return [...passwordsOf(url), ...inPath.map(decodeURIComponent), ...searchParams.values()];
}
