import { isStorableText } from '../../../src/domain/values/text.ts';
import type { ApiContext } from '../../context.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import { readBytes } from '../../middleware/json-body.ts';
import { isSameText, type Session } from './session.ts';

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

/** The fields of a form of this session. @throws ApiError `cross_origin` for a form of another one */
export async function enterForm(ctx: ApiContext, { csrf }: Session): Promise<URLSearchParams> {
  const form = await readForm(ctx);
  if (isSameText(form.get('csrf') ?? '', csrf)) return form;
  throw new ApiError('cross_origin', 'this form belongs to an earlier session; reload the page');
}
