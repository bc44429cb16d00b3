import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { asError } from '../../domain/values/errors.ts';
import { parseRetryAfter } from '../../domain/values/retry-after.ts';
import { VenueError } from '../errors.ts';
import { digestOf } from './answer-memory.ts';
import { isDeeperThan } from './json-depth.ts';

interface AttemptOptions {
  venue: string;
  method: 'GET' | 'POST';
  /** Path with query, as it goes on the request line. */
  target: string;
  body?: string;
  headers: Record<string, string>;
  maxBodyBytes: number;
  signal: AbortSignal;
  /** Whether the caller needs nothing of a body with this digest, under these headers. */
  isKnown?(digest: string, headers: AttemptResult['headers']): boolean;
}

interface AttemptResult {
  statusCode: number;
  /** Lower-case names. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Undefined for a known body. */
  json: unknown;
  /** Of the decoded body, when `isKnown` is given. */
  digest?: string;
}

/** Far deeper than any answer of a venue. */
const MAX_DEPTH = 100;
/** Bytes of an error answer that are read so that its connection can be reused. */
const DRAIN_BYTES = 64 * 1024;

/**
 * One HTTP request and its whole JSON answer.
 * @throws VenueError `http_status`, `rate_limited`, `response_too_large` or `invalid_payload`; the errors of undici on network faults and
 * on abort, because only the caller knows which of its signals fired.
 */
export async function attemptJson(dispatcher: Dispatcher, options: AttemptOptions): Promise<AttemptResult> {
  const response = await dispatcher.request({
    method: options.method,
    path: options.target,
    headers: options.headers,
    signal: options.signal,
    ...(options.body !== undefined && { body: options.body }),
  });
  const { statusCode } = response;
  if (statusCode < 200 || statusCode > 299) {
    await response.body.dump({ limit: DRAIN_BYTES, signal: options.signal });
    throw statusError(options.venue, statusCode, response.headers['retry-after']);
  }
  const body = await readBody(options, response);
  const digest = options.isKnown && { digest: digestOf(...body) };
  if (digest && options.isKnown?.(digest.digest, response.headers)) {
    return { statusCode, headers: response.headers, json: undefined, ...digest };
  }
  const text = Buffer.concat(body).toString('utf8');
  if (isDeeperThan(text, MAX_DEPTH)) {
    const why = `the answer is nested deeper than ${MAX_DEPTH} levels`;
    throw new VenueError(options.venue, 'invalid_payload', why, { retryable: true, statusCode });
  }
  try {
    return { statusCode, headers: response.headers, json: JSON.parse(text), ...digest };
  } catch {
    // The message of the parser quotes the answer, which may repeat the key of the request.
    throw new VenueError(options.venue, 'invalid_payload', `the answer is not JSON (${text.length} characters)`, {
      retryable: true,
      statusCode,
    });
  }
}

function statusError(venue: string, statusCode: number, header: string | string[] | undefined): VenueError {
  const retryAfter = parseRetryAfter(header, Date.now());
  return new VenueError(venue, statusCode === 429 ? 'rate_limited' : 'http_status', `HTTP ${statusCode}`, {
    retryable: statusCode >= 500 || statusCode === 429 || statusCode === 408,
    statusCode,
    ...(retryAfter !== undefined && { retryAfterMs: retryAfter * 1000 }),
  });
}

/** The parts of the decoded body. */
async function readBody(options: AttemptOptions, response: Dispatcher.ResponseData): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const collect = async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > options.maxBodyBytes) return;
      chunks.push(chunk);
    }
  };
  const decoder = decoderFor(String(response.headers['content-encoding'] ?? ''));
  try {
    if (decoder) await pipeline(response.body, decoder, collect);
    else await pipeline(response.body, collect);
  } catch (cause) {
    // A stream that is left early makes the pipeline fail with an error of its own.
    if (bytes <= options.maxBodyBytes) throw readError(options, response, cause);
  }
  if (bytes > options.maxBodyBytes) {
    throw new VenueError(options.venue, 'response_too_large', `more than ${options.maxBodyBytes} bytes`, {
      retryable: false,
      statusCode: response.statusCode,
    });
  }
  return chunks;
}

/** The codes of zlib begin with Z_: the bytes arrived and are not a complete gzip stream. Other errors stay as they are. */
function readError(options: AttemptOptions, response: Dispatcher.ResponseData, cause: unknown): unknown {
  if (!/^(Z_|ERR__ERROR_FORMAT|ERR_BROTLI)/.test(String((cause as { code?: unknown }).code))) return cause;
  return new VenueError(options.venue, 'invalid_payload', `cannot decompress: ${asError(cause).message}`, {
    retryable: true,
    statusCode: response.statusCode,
    cause,
  });
}

function decoderFor(encoding: string) {
  switch (encoding.trim().toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return createInflate();
    case 'br':
      return createBrotliDecompress();
    default:
      return undefined;
  }
}
