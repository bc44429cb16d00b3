import type { z } from 'zod';
import { OddswireError } from '../domain/values/errors.ts';
import { type FeedsConfig, type FeedVenue, PUBLIC_FEED_URLS } from './feeds.ts';
import { environmentOf, mayRead } from './process-secrets.ts';
import { parseRedisUrl } from './redis-address.ts';
import { SCHEMA, type Settings, VARIABLES, type Values, type VariableName } from './variables.ts';

/** An invalid configuration. `problems` names every wrong variable, never its value. */
export class ConfigError extends OddswireError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super('invalid_config', `configuration: ${problems.join('; ')}`);
    this.problems = problems;
  }
}

/** Rules over two variables. */
const wholeSchema = SCHEMA
  // With one password for both roles, every login would have the role of operator.
  .refine(({ OPS_PASSWORD: operator, OPS_VIEWER_PASSWORD: viewer }) => operator === undefined || operator !== viewer, {
    path: ['OPS_VIEWER_PASSWORD'],
    message: 'must not be the same as OPS_PASSWORD',
  })
  .refine(({ CONSOLE_PUBLIC_MARKET: market, VENUES: enabled }) => !market || enabled.includes(market.venue), {
    path: ['CONSOLE_PUBLIC_MARKET'],
    message: 'names a venue that VENUES does not enable',
  });

const feedSchema = SCHEMA.pick({
  VENUES: true,
  POLYMARKET_CLOB_URL: true,
  KALSHI_API_URL: true,
  MANIFOLD_API_URL: true,
  LIMITLESS_API_URL: true,
  FEEDS: true,
  FEED_MARKETS: true,
  POLYMARKET_FEED_URL: true,
  KALSHI_FEED_URL: true,
  KALSHI_API_KEY_ID: true,
  KALSHI_PRIVATE_KEY_FILE: true,
  MANIFOLD_FEED_URL: true,
  LIMITLESS_FEED_URL: true,
});

type Environment = Readonly<Record<string, string | undefined>>;

/** The settings that depend on more than one variable. */
interface Derived {
  /** The same database past any pooler, for uses that need a whole session: LISTEN, migrations, the Postgres queues. */
  readonly databaseDirectUrl: string;
  /** Whether statements are prepared by name. A pooler in transaction mode must support this. */
  readonly hasPreparedStatements: boolean;
  readonly feeds: FeedsConfig;
  /** `hosts` are the host names that the operator pages accept; none: loopback names and IP addresses. */
  readonly ops: { readonly hosts: readonly string[] };
}

/** All settings of a process from its environment, parsed once and frozen. The table of variables.ts has their meanings and units. */
export type Config = Settings & Derived;

/**
 * Parses the environment. An empty variable counts as unset, and so does a secret that the process of the given name does not need.
 * @throws ConfigError naming every problem at once.
 */
export function loadConfig(environment: Environment, processName?: string): Config {
  const given = processName === undefined ? environment : environmentOf(processName, environment);
  const input = inputOf(Object.keys(VARIABLES) as VariableName[], given);
  const parsed = wholeSchema.safeParse(input);
  const problems = parsed.success ? [] : describeProblems(parsed.error, input);
  const needsKeyRing = processName === undefined || mayRead(processName, 'SECRETS_KEYS');
  if (needsKeyRing && input['SECRETS_KEYS'] === undefined) problems.push('SECRETS_KEYS is required');
  if (processName === undefined || mayRead(processName, 'ARCHIVE_S3_SECRET_ACCESS_KEY')) {
    problems.push(...storeProblems(input));
  }
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const { data: value } = parsed;
  const settings = settingsOf(value);
  return deepFreeze({ ...settings, ...derived(value), ops: { ...settings.ops, hosts: opsHosts(value) } });
}

/** An object store needs a local folder and a key. */
function storeProblems(input: Input): string[] {
  if (input['ARCHIVE_URL'] === undefined) return [];
  return ['ARCHIVE_DIR', 'ARCHIVE_S3_ACCESS_KEY_ID', 'ARCHIVE_S3_SECRET_ACCESS_KEY']
    .filter((name) => input[name] === undefined)
    .map((name) => `ARCHIVE_URL needs ${name}`);
}

/**
 * The venues and feeds of an environment, for a command that needs no other setting. An empty variable counts as unset.
 * @throws ConfigError naming every problem at once
 */
export function loadFeeds(environment: Environment): Pick<Config, 'venues' | 'feeds'> {
  const input = inputOf(Object.keys(feedSchema.shape) as VariableName[], environment);
  const parsed = feedSchema.safeParse(input);
  if (!parsed.success) throw new ConfigError(describeProblems(parsed.error, input));
  return deepFreeze({ venues: parsed.data.VENUES, feeds: readFeeds(parsed.data) });
}

/** The table behind `npm run config`: each variable and its effect. */
export function configTable(): { name: string; default: string; meaning: string }[] {
  return Object.entries(VARIABLES).map(([name, variable]) => ({
    name,
    default: variable.shownDefault ?? variable.default ?? 'none',
    meaning: variable.meaning,
  }));
}

type Input = Record<string, string | undefined>;

function inputOf(names: readonly VariableName[], given: Environment): Input {
  return Object.fromEntries(names.map((name) => [name, given[name] || VARIABLES[name].default]));
}

interface Tree {
  [key: string]: unknown;
}

/** Each value at its place. A group of settings exists without values too. */
function settingsOf(value: Values): Settings {
  const settings: Tree = {};
  for (const [name, { at }] of Object.entries(VARIABLES)) {
    if (at === undefined) continue;
    const groups = at.split('.');
    const key = groups.pop() as string;
    let group = settings;
    for (const part of groups) {
      group[part] ??= {};
      group = group[part] as Tree;
    }
    const own = value[name as VariableName];
    if (own !== undefined) group[key] = own;
  }
  return settings as unknown as Settings;
}

function derived(value: Values): Omit<Derived, 'ops'> {
  return {
    databaseDirectUrl: value.DATABASE_DIRECT_URL ?? value.DATABASE_URL,
    hasPreparedStatements:
      (value.DATABASE_PREPARED ?? (value.DATABASE_DIRECT_URL === undefined ? 'on' : 'off')) === 'on',
    feeds: readFeeds(value),
  };
}

function opsHosts({ OPS_PUBLIC_URL: publicUrl, OPS_HOSTS: hosts = [] }: Values): string[] {
  return [...new Set([...hosts, ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname])])];
}

type FeedValues = z.output<typeof feedSchema>;

function readFeeds(value: FeedValues): FeedsConfig {
  const { KALSHI_API_KEY_ID: id, KALSHI_PRIVATE_KEY_FILE: file } = value;
  const urls = {
    polymarket: value.POLYMARKET_FEED_URL ?? publicUrl('polymarket', 'POLYMARKET_CLOB_URL', value),
    kalshi: value.KALSHI_FEED_URL ?? publicUrl('kalshi', 'KALSHI_API_URL', value),
    manifold: value.MANIFOLD_FEED_URL ?? publicUrl('manifold', 'MANIFOLD_API_URL', value),
    limitless: value.LIMITLESS_FEED_URL ?? publicUrl('limitless', 'LIMITLESS_API_URL', value),
  };
  return {
    venues: value.FEEDS,
    markets: value.FEED_MARKETS,
    urls: Object.fromEntries(Object.entries(urls).filter(([, url]) => url !== undefined)),
    hasKalshiKeyId: id !== undefined,
    ...(id !== undefined && file !== undefined && { kalshiKey: { id, file } }),
  };
}

type ApiVariable = 'POLYMARKET_CLOB_URL' | 'KALSHI_API_URL' | 'MANIFOLD_API_URL' | 'LIMITLESS_API_URL';

function publicUrl(venue: FeedVenue, variable: ApiVariable, value: FeedValues): string | undefined {
  return value[variable] === VARIABLES[variable].default ? PUBLIC_FEED_URLS[venue] : undefined;
}

function describeProblems(error: z.ZodError, input: Record<string, string | undefined>): string[] {
  return error.issues.map((issue) => {
    const name = String(issue.path[0]);
    return input[name] === undefined ? `${name} is required` : `${name}: ${issue.message}`;
  });
}

function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value) && !Buffer.isBuffer(value)) {
    for (const item of Object.values(value)) deepFreeze(item);
    return ArrayBuffer.isView(value) ? value : Object.freeze(value);
  }
  return value;
}

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
