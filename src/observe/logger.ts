import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';

export type { Logger };

/** Characters: enough to act on, far less than a bulk statement or a page of a venue. */
const MAX_MESSAGE_LENGTH = 500;
const MAX_STACK_LENGTH = 4_000;

/** Patterns of secrets of any owner: API keys, webhook secrets, and the user part of addresses. */
const SECRET_PATTERNS = [
  { sign: 'ow_', pattern: /\bow_([a-z]+)_([A-Za-z0-9]+)_[A-Za-z0-9_-]+/g, shown: 'ow_$1_$2_[redacted]' },
  { sign: 'whsec_', pattern: /\bwhsec_[A-Za-z0-9+/_=-]+/g, shown: 'whsec_[redacted]' },
  { sign: '://', pattern: /(:\/\/)[^\s/"\\@]+@/g, shown: '$1[redacted]@' },
] as const;
/** Shorter secrets would match ordinary words. */
const MIN_SECRET_LENGTH = 8;

/** Paths whose values never reach a log line, even when a caller logs them by mistake. */
const REDACTED = [
  'authorization',
  'apiKey',
  'secret',
  'password',
  'signature',
  'databaseUrl',
  'redisUrl',
  '*.authorization',
  '*.apiKey',
  '*.secret',
  '*.password',
  '*.signature',
  'headers["x-api-key"]',
  'headers.cookie',
  'req.headers.authorization',
  'req.headers["x-api-key"]',
  'req.headers.cookie',
];

interface LoggerOptions {
  process: string;
  level: string;
  /** Values that must never be shown: see `secretsOf`. Values of fewer than 8 characters are ignored. */
  secrets?: readonly string[];
  destination?: DestinationStream;
}

/**
 * The JSON logger of one process, with three layers of protection: callers log no secrets; fields with the name of a secret are
 * replaced; and in the finished line the process's own `secrets`, and any text that looks like a secret, are replaced too. Database
 * errors lose their `query` and `parameters`, because one failed bulk insert would print 190 kB of values, secrets included.
 */
export function createLogger(options: LoggerOptions): Logger {
  const secrets = shownForms(options.secrets ?? []);
  return pino(
    {
      level: options.level,
      base: { process: options.process, pid: process.pid },
      redact: { paths: REDACTED, censor: '[redacted]' },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: serializeError },
      hooks: { streamWrite: (line) => withoutSecrets(line, secrets) },
    },
    options.destination,
  );
}

/** Their forms in a line: in JSON and in an address. */
function shownForms(secrets: readonly string[]): string[] {
  const forms = secrets.flatMap((secret) => [JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)]);
  return [...new Set(forms)].filter((form) => form.length >= MIN_SECRET_LENGTH).sort((a, b) => b.length - a.length);
}

function withoutSecrets(line: string, secrets: readonly string[]): string {
  let clean = line;
  for (const secret of secrets) if (clean.includes(secret)) clean = clean.replaceAll(secret, '[redacted]');
  for (const { sign, pattern, shown } of SECRET_PATTERNS)
    if (clean.includes(sign)) clean = clean.replace(pattern, shown);
  return clean;
}

function serializeError(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { type, message, stack } = stdSerializers.err(error);
  const fields = error as Error & { code?: unknown; table?: unknown; constraint?: unknown };
  return {
    type,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
    stack: stack?.slice(0, MAX_STACK_LENGTH),
    ...(fields.code !== undefined && { code: fields.code }),
    ...(fields.table !== undefined && { table: fields.table }),
    ...(fields.constraint !== undefined && { constraint: fields.constraint }),
  };
}
