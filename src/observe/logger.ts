import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';

export type { Logger };

/** Characters: enough to act on, far from the size of a bulk statement or a venue's page. */
const MAX_MESSAGE_LENGTH = 500;
const MAX_STACK_LENGTH = 4_000;

/** Paths whose values never reach a log line, wherever a careless caller puts them. */
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

/**
 * The JSON logger of one process. Database errors lose their `query` and `parameters`: one failed bulk insert would
 * otherwise print 190 kB of values, secrets included.
 */
export function createLogger(options: { process: string; level: string; destination?: DestinationStream }): Logger {
  return pino(
    {
      level: options.level,
      base: { process: options.process, pid: process.pid },
      redact: { paths: REDACTED, censor: '[redacted]' },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: serializeError },
    },
    options.destination,
  );
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
