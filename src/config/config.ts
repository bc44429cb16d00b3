import { accessSync, constants, statSync } from 'node:fs';
import { z } from 'zod';
import { type Cidr, parseCidrs } from '../domain/address-policy.ts';
import { asError, OddswireError } from '../domain/errors.ts';
import { parseRetrySchedule } from '../domain/retry-schedule.ts';
import { parseSecretsKeys, type SecretKey } from '../domain/secret-keys.ts';
import { VENUE_NAMES, type VenueName } from '../domain/venue.ts';
import { VARIABLES, type VariableName } from './variables.ts';

/** Bad configuration: `problems` names every variable that is wrong, never its value. */
export class ConfigError extends OddswireError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super('invalid_config', `configuration: ${problems.join('; ')}`);
    this.problems = problems;
  }
}

function isReadableFile(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Decimal digits only: `0x50`, `1e3` and blanks are typing errors, not numbers. */
function wholeNumber(min: number, max: number, hint?: string) {
  const message = hint ?? `a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message));
}

const port = wholeNumber(0, 65_535);
const milliseconds = wholeNumber(100, 86_400_000);
const days = wholeNumber(1, 36_500);
const httpUrl = z.url({ protocol: /^https?$/ }).transform((url) => url.replace(/\/+$/, ''));

function list(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

const venues = z
  .string()
  .transform(list)
  .pipe(z.array(z.enum(VENUE_NAMES, `unknown venue; known: ${VENUE_NAMES.join(', ')}`)).min(1))
  .transform((names) => [...new Set(names)]);

/** A text with a parser of its own: what the parser throws is the problem that is shown. */
function parsedBy<T>(parse: (text: string) => T) {
  return z.string().transform((text, context) => {
    try {
      return parse(text);
    } catch (error) {
      context.addIssue({ code: 'custom', message: asError(error).message });
      return z.NEVER;
    }
  });
}

const readableFile = z.string().refine(isReadableFile, 'not a file that can be read');

const schema = z.object({
  HOST: z.string().min(1),
  PORT: port,
  METRICS_PORT: port,
  METRICS_HOST: z.string().min(1),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/ }),
  DATA_DIR: z.string().min(1),
  REDIS_URL: z.url({ protocol: /^rediss?$/ }).optional(),
  QUEUE_PREFIX: z.string().regex(/^[a-z][a-z0-9_]{0,30}$/, 'lower-case letters, digits and _, at most 31'),
  VENUES: venues,
  POLYMARKET_GAMMA_URL: httpUrl,
  POLYMARKET_CLOB_URL: httpUrl,
  POLYMARKET_DATA_URL: httpUrl,
  KALSHI_API_URL: httpUrl,
  MANIFOLD_API_URL: httpUrl,
  JUPITER_API_URL: httpUrl,
  JUPITER_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{1,512}$/, 'printable ASCII without spaces')
    .optional(),
  SOLANA_RPC_URL: httpUrl.optional(),
  POLL_MARKETS_MS: milliseconds,
  POLL_PRICES_MS: milliseconds,
  POLL_TRADES_MS: milliseconds,
  POLL_BOOKS_MS: milliseconds,
  POLL_WALLETS_MS: milliseconds,
  BOOTSTRAP_API_KEY: z
    .string()
    .min(16, 'at least 16 characters')
    .max(256)
    .regex(/^[\x21-\x7e]+$/, 'printable ASCII without spaces')
    .optional(),
  SECRETS_KEYS: parsedBy(parseSecretsKeys),
  WEBHOOK_RETRY_SCHEDULE: parsedBy(parseRetrySchedule),
  WEBHOOK_TIMEOUT_MS: wholeNumber(
    100,
    15_000,
    'a whole number from 100 to 15000: a process must be able to stop within 20 s',
  ),
  WEBHOOK_ALLOW_CIDRS: parsedBy(parseCidrs),
  WEBHOOK_CA_FILE: readableFile.optional(),
  OPS_PASSWORD: z.string().min(8, 'at least 8 characters').optional(),
  POLL_BOOKS_MARKETS: wholeNumber(0, 10_000),
  RETENTION_TRADES_DAYS: days,
  RETENTION_PRICE_HISTORY_DAYS: days,
  // A partition a day: many more would slow down every read.
  RETENTION_BOOK_HISTORY_DAYS: wholeNumber(1, 400),
  RETENTION_OBSERVATIONS_DAYS: wholeNumber(1, 400),
  RETENTION_ATTEMPTS_DAYS: days,
  RETENTION_EVENTS_DAYS: days,
  DECIMAL_FORMAT: z.enum(['number', 'string']),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
});

type Environment = Readonly<Record<string, string | undefined>>;

/** Everything a process may know of its environment, parsed once and frozen. */
export interface Config {
  readonly http: { readonly host: string; readonly port: number };
  readonly metrics: { readonly host: string; readonly port: number };
  readonly databaseUrl: string;
  readonly dataDir: string;
  readonly queues: { readonly redisUrl?: string; readonly prefix: string };
  readonly venues: readonly VenueName[];
  readonly venueUrls: {
    readonly polymarket: { readonly gamma: string; readonly clob: string; readonly data: string };
    readonly kalshi: string;
    readonly manifold: string;
    readonly solana: { readonly jupiter: string; readonly jupiterKey?: string; readonly rpc?: string };
  };
  readonly pollMs: {
    readonly markets: number;
    readonly prices: number;
    readonly books: number;
    readonly trades: number;
    readonly wallets: number;
  };
  readonly bootstrapApiKey?: string;
  readonly secretsKeys: readonly SecretKey[];
  readonly webhooks: {
    /** Seconds between attempts: N delays make N + 1 attempts. */
    readonly retryScheduleSeconds: readonly number[];
    readonly timeoutMs: number;
    readonly allowCidrs: readonly Cidr[];
    readonly caFile?: string;
  };
  readonly opsPassword?: string;
  /** Markets per venue whose books are polled. */
  readonly bookPollMarkets: number;
  readonly retention: {
    readonly tradesDays: number;
    readonly priceHistoryDays: number;
    readonly bookHistoryDays: number;
    readonly observationsDays: number;
    readonly attemptsDays: number;
    readonly eventsDays: number;
  };
  readonly decimalFormat: 'number' | 'string';
  readonly logLevel: string;
}

/**
 * Parses the environment. An empty variable counts as unset.
 * @throws ConfigError naming every problem at once.
 */
export function loadConfig(environment: Environment): Config {
  const input = Object.fromEntries(
    (Object.keys(VARIABLES) as VariableName[]).map((name) => [name, environment[name] || VARIABLES[name].default]),
  );
  const parsed = schema.safeParse(input);
  if (!parsed.success) throw new ConfigError(describeProblems(parsed.error, input));
  const value = parsed.data;
  return deepFreeze({
    http: { host: value.HOST, port: value.PORT },
    metrics: { host: value.METRICS_HOST, port: value.METRICS_PORT },
    databaseUrl: value.DATABASE_URL,
    dataDir: value.DATA_DIR,
    queues: { prefix: value.QUEUE_PREFIX, ...(value.REDIS_URL !== undefined && { redisUrl: value.REDIS_URL }) },
    venues: value.VENUES,
    venueUrls: {
      polymarket: {
        gamma: value.POLYMARKET_GAMMA_URL,
        clob: value.POLYMARKET_CLOB_URL,
        data: value.POLYMARKET_DATA_URL,
      },
      kalshi: value.KALSHI_API_URL,
      manifold: value.MANIFOLD_API_URL,
      solana: {
        jupiter: value.JUPITER_API_URL,
        ...(value.JUPITER_API_KEY !== undefined && { jupiterKey: value.JUPITER_API_KEY }),
        ...(value.SOLANA_RPC_URL !== undefined && { rpc: value.SOLANA_RPC_URL }),
      },
    },
    pollMs: {
      markets: value.POLL_MARKETS_MS,
      prices: value.POLL_PRICES_MS,
      books: value.POLL_BOOKS_MS,
      trades: value.POLL_TRADES_MS,
      wallets: value.POLL_WALLETS_MS,
    },
    ...(value.BOOTSTRAP_API_KEY !== undefined && { bootstrapApiKey: value.BOOTSTRAP_API_KEY }),
    secretsKeys: value.SECRETS_KEYS,
    webhooks: {
      retryScheduleSeconds: value.WEBHOOK_RETRY_SCHEDULE,
      timeoutMs: value.WEBHOOK_TIMEOUT_MS,
      allowCidrs: value.WEBHOOK_ALLOW_CIDRS,
      ...(value.WEBHOOK_CA_FILE !== undefined && { caFile: value.WEBHOOK_CA_FILE }),
    },
    ...(value.OPS_PASSWORD !== undefined && { opsPassword: value.OPS_PASSWORD }),
    bookPollMarkets: value.POLL_BOOKS_MARKETS,
    retention: {
      tradesDays: value.RETENTION_TRADES_DAYS,
      priceHistoryDays: value.RETENTION_PRICE_HISTORY_DAYS,
      bookHistoryDays: value.RETENTION_BOOK_HISTORY_DAYS,
      observationsDays: value.RETENTION_OBSERVATIONS_DAYS,
      attemptsDays: value.RETENTION_ATTEMPTS_DAYS,
      eventsDays: value.RETENTION_EVENTS_DAYS,
    },
    decimalFormat: value.DECIMAL_FORMAT,
    logLevel: value.LOG_LEVEL,
  });
}

/** The table behind `npm run config`: what can be set, and what it does. */
export function configTable(): { name: string; default: string; meaning: string }[] {
  return Object.entries(VARIABLES).map(([name, variable]) => ({
    name,
    default: variable.shownDefault ?? variable.default ?? 'none',
    meaning: variable.meaning,
  }));
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
