import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type ReceivedRequest, type SignatureVerdict, startReceiver } from './receiver.ts';

/**
 * The demo's webhook receiver: prints one line per event with the verdict on both signatures.
 * The secret comes from RECEIVER_SECRET or from a file (one secret per line, read for each event, so that it
 * may be written after the start). Ends on SIGTERM, SIGINT, or when its parent process ends.
 */
const USAGE = `usage: receiver-main [--host ADDRESS] [--port PORT] [--ca-dir DIR] [--secret-file FILE] [--json]
  --json           prints one JSON object per event
  --signed-path    only requests whose path begins with it have the secret; others are unchecked
  RECEIVER_SECRET  the webhook secret, instead of --secret-file
  --ca-dir         keeps ca.pem there: point WEBHOOK_CA_FILE at it`;
const DEFAULT_CA_DIRECTORY = '.data/receiver';
const RECORDED = 1000;

function secretsFrom(file: string | undefined, signedPath: string): (path: string) => readonly string[] {
  const fixed = process.env['RECEIVER_SECRET'];
  const read = fixed !== undefined && fixed !== '' ? () => [fixed] : secretsIn(file);
  return (path) => (path.startsWith(signedPath) ? read() : []);
}

function secretsIn(file: string | undefined): () => readonly string[] {
  if (file === undefined) return () => [];
  return () => {
    try {
      return readFileSync(file, 'utf8')
        .split(/\r?\n/)
        .filter((line) => line !== '');
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
      throw error;
    }
  };
}

/** `time  type  id  key=value ...  attempt n  X-Webhook-Signature ok  webhook-signature ok`. */
function eventLine(request: ReceivedRequest): string {
  const event = asRecord(request.json);
  return [
    new Date(request.receivedAtMs).toISOString().slice(11, 23),
    plain(event['type'] ?? `${request.method} ${request.path}`).padEnd(14),
    plain(event['id'] ?? request.headers['webhook-id'] ?? '(no id)'),
    ...Object.entries(asRecord(event['data'])).map(([name, value]) => `${plain(name)}=${plain(value)}`),
    `attempt ${plain(request.headers['x-webhook-attempt'] ?? '?')}`,
    `X-Webhook-Signature ${verdictText(request.bodySignature)}`,
    `webhook-signature ${verdictText(request.standardSignature)}`,
    ...(request.duplicate ? ['DUPLICATE'] : []),
  ].join('  ');
}

/** The same facts for a program. */
function eventJson(request: ReceivedRequest): string {
  const event = asRecord(request.json);
  return JSON.stringify({
    event: {
      at: new Date(request.receivedAtMs).toISOString(),
      type: String(event['type'] ?? `${request.method} ${request.path}`),
      id: String(event['id'] ?? request.headers['webhook-id'] ?? ''),
      data: asRecord(event['data']),
      attempt: String(request.headers['x-webhook-attempt'] ?? '?'),
      bodySignature: request.bodySignature,
      standardSignature: request.standardSignature,
      isDuplicate: request.duplicate,
    },
  });
}

function verdictText(verdict: SignatureVerdict): string {
  if (verdict === 'unchecked') return 'unchecked (no secret known)';
  return verdict === 'ok' ? 'ok' : verdict.toUpperCase();
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** Foreign text must not control the terminal. */
function plain(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  const short = text.length > 80 ? `${text.slice(0, 77)}...` : text;
  return short.replace(/[\p{Cc}\p{Cf}]/gu, '?');
}

function startFailure(error: unknown, port: number): string {
  if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
    return `receiver: port ${port} is already taken`;
  }
  return `receiver: ${error instanceof Error ? error.message : String(error)}`;
}

function readArguments() {
  return parseArgs({
    options: {
      host: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '0' },
      'ca-dir': { type: 'string', default: DEFAULT_CA_DIRECTORY },
      'secret-file': { type: 'string' },
      'signed-path': { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  }).values;
}

async function main(): Promise<void> {
  const values = readArguments();
  if (values.help) {
    console.log(USAGE);
    return;
  }
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`"${values.port}" is not a port`);
  const caDirectory = resolve(values['ca-dir']);
  const receiver = await startReceiver({
    host: values.host,
    port,
    caDirectory,
    secrets: secretsFrom(values['secret-file'], values['signed-path']),
    maxRecorded: RECORDED,
    onRequest: (request) => console.log(values.json ? eventJson(request) : eventLine(request)),
  }).catch((error: unknown) => {
    throw new Error(startFailure(error, port), { cause: error });
  });
  const caFile = join(caDirectory, 'ca.pem');
  console.log(`receiver: listening on ${receiver.url}, its CA is ${caFile}`);
  process.send?.({ type: 'ready', url: receiver.url, caFile });

  let stopping = false;
  const stop = () => {
    if (stopping) return;
    stopping = true;
    // The channel would keep the process alive.
    if (process.connected) process.disconnect();
    receiver.close().catch((error: unknown) => fail(error));
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);
  process.on('disconnect', stop);
}

function fail(error: unknown): void {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}

main().catch(fail);
