import { asError } from '../../src/domain/values/errors.ts';
import { isStorableText } from '../../src/domain/values/text.ts';
import type { ApiContext } from '../deps.ts';
import { ApiError, invalidRequest } from '../errors.ts';

/** Much larger than any form of the pages. */
const MAX_FORM_BYTES = 64 * 1024;

/**
 * The fields of a form.
 * @throws ApiError `unsupported_media_type`, `payload_too_large`, `invalid_request` for text that cannot be stored.
 */
export async function readForm(ctx: ApiContext): Promise<URLSearchParams> {
  const [type = ''] = ctx.get('Content-Type').toLowerCase().split(';');
  if (type.trim() !== 'application/x-www-form-urlencoded') {
    throw new ApiError('unsupported_media_type', 'send the form of the page', {
      headers: { Accept: 'application/x-www-form-urlencoded' },
    });
  }
  const form = new URLSearchParams((await readBytes(ctx)).toString('utf8'));
  for (const [name, value] of form) {
    if (!isStorableText(name) || !isStorableText(value)) {
      throw invalidRequest([{ path: name.slice(0, 100), message: 'must not contain U+0000 or lone surrogates' }]);
    }
  }
  return form;
}

async function readBytes(ctx: ApiContext): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_FORM_BYTES) break;
      chunks.push(chunk);
    }
  } catch (error) {
    throw new ApiError('invalid_request', 'the form is incomplete', { cause: asError(error) });
  }
  if (size > MAX_FORM_BYTES) {
    // The server does not read the rest, so the connection cannot be reused.
    throw new ApiError('payload_too_large', `a form may have at most ${MAX_FORM_BYTES} bytes`, {
      headers: { Connection: 'close' },
    });
  }
  return Buffer.concat(chunks);
}
