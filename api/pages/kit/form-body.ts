import { isStorableText } from '../../../src/domain/values/text.ts';
import type { ApiContext } from '../../deps.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import { readBytes } from '../../middleware/json-body.ts';

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
