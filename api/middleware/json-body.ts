import { asError } from '../../src/domain/values/errors.ts';
import { parseExactJson } from '../../src/domain/values/exact-json.ts';
import { isStorableText } from '../../src/domain/values/text.ts';
import type { ApiContext } from '../context.ts';
import { ApiError, type ErrorDetail, invalidRequest } from '../errors.ts';

/** Much larger than any valid body. */
const MAX_BODY_BYTES = 64 * 1024;

interface BodyOptions {
  /** Whether the request may have no body, which then reads as `{}`. */
  isOptional?: boolean;
}

/**
 * The JSON body of a request. Throws 413 beyond 64 KiB, 415 for any other type, `invalid_json`, and 400 for text that cannot
 * be stored.
 */
export async function readJsonBody(ctx: ApiContext, options: BodyOptions = {}): Promise<unknown> {
  const bytes = await readBytes(ctx);
  if (bytes.length === 0 && options.isOptional) return {};
  checkMediaType(ctx);
  const value = parseJson(bytes);
  const problems = unstorableTexts(value);
  if (problems.length > 0) throw invalidRequest(problems);
  return value;
}

/** The bytes of a body of at most 64 KiB. @throws ApiError `payload_too_large`, or `invalid_request` when the body ends early. */
export async function readBytes(ctx: ApiContext): Promise<Buffer> {
  if (Number(ctx.get('Content-Length')) > MAX_BODY_BYTES) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) break;
      chunks.push(chunk);
    }
  } catch (error) {
    throw new ApiError('invalid_request', 'the request body is incomplete', { cause: asError(error) });
  }
  if (size > MAX_BODY_BYTES) throw tooLarge();
  return Buffer.concat(chunks);
}

function tooLarge(): ApiError {
  // The server does not read the rest of the body, so the connection cannot be reused.
  return new ApiError('payload_too_large', `a body may have at most ${MAX_BODY_BYTES} bytes`, {
    headers: { Connection: 'close' },
  });
}

function checkMediaType(ctx: ApiContext): void {
  const [type = '', ...parameters] = ctx
    .get('Content-Type')
    .toLowerCase()
    .split(';')
    .map((part) => part.trim());
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  const isUtf8 = charset === undefined || ['utf-8', '"utf-8"', 'utf8'].includes(charset);
  const encoding = ctx.get('Content-Encoding').toLowerCase();
  if (type !== 'application/json' || !isUtf8 || !['', 'identity'].includes(encoding)) {
    throw new ApiError(
      'unsupported_media_type',
      'send JSON in UTF-8, uncompressed, as Content-Type: application/json',
      {
        headers: { Accept: 'application/json' },
      },
    );
  }
}

function parseJson(bytes: Buffer): unknown {
  const { value, repeated } = parsed(bytes);
  if (!repeated) return value;
  const message = `the body has this field twice, again at character ${repeated.at}`;
  throw invalidRequest([{ path: repeated.path.slice(0, 200) || 'body', message }]);
}

function parsed(bytes: Buffer): ReturnType<typeof parseExactJson> {
  try {
    return parseExactJson(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (error) {
    const isText = error instanceof SyntaxError;
    throw new ApiError('invalid_json', isText ? 'the body is not valid JSON' : 'the body is not valid UTF-8');
  }
}

/** Iterates with an explicit stack, because 64 KiB of brackets nest deeper than the call stack. */
function unstorableTexts(root: unknown): ErrorDetail[] {
  const details: ErrorDetail[] = [];
  const message = 'must not contain U+0000 or lone surrogates';
  const open: { path: string; value: unknown }[] = [{ path: '', value: root }];
  for (let item = open.pop(); item !== undefined && details.length < 10; item = open.pop()) {
    const { path, value } = item;
    if (typeof value === 'string') {
      if (!isStorableText(value)) details.push({ path: path || 'body', message });
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        const innerPath = path.length > 200 ? path : path === '' ? key : `${path}.${key}`;
        if (!isStorableText(key)) details.push({ path: path || 'body', message: `field names ${message}` });
        open.push({ path: innerPath, value: inner });
      }
    }
  }
  return details;
}
