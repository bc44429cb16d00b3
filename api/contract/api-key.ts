import { z } from 'zod';
import { isName, MAX_NAME_LENGTH, SCOPES } from '../../src/domain/values/api-key.ts';
import { KEY_STATUSES } from '../../src/store/accounts/key-lists.ts';
import { listParam } from '../http/input.ts';
import { endTime, isoTime, opaqueId } from './wire.ts';

/** A key without its secret part. */
export const apiKey = z
  .object({
    id: opaqueId.meta({ description: 'The second part of the key: `ow_live_<id>_<secret>`.' }),
    name: z.string(),
    scopes: z.array(z.string()),
    status: z.enum(KEY_STATUSES),
    current: z.boolean().meta({ description: 'Whether it is the key of this request.' }),
    createdAt: isoTime,
    expiresAt: isoTime.optional().meta({ description: 'Absent: it does not expire.' }),
    lastUsedAt: isoTime.optional().meta({ description: 'Some seconds late.' }),
    revokedAt: isoTime.optional(),
  })
  .meta({ description: 'An API key of the account, without the key itself.' });
export type ApiKeyBody = z.output<typeof apiKey>;

export const apiKeyExample: ApiKeyBody = {
  id: 'x7Kq2mWvT9bR',
  name: 'research laptop',
  scopes: ['markets:read', 'alerts'],
  status: 'active',
  current: false,
  createdAt: '2026-01-02T03:04:05.678Z',
};

export const apiKeyWithSecret = apiKey
  .extend({
    key: z.string().meta({ description: 'The key. No later answer contains it, and oddswire stores a hash.' }),
  })
  .meta({ description: 'A new API key.' });

export const apiKeyWithSecretExample: z.output<typeof apiKeyWithSecret> = {
  ...apiKeyExample,
  key: `ow_live_${apiKeyExample.id}_0000000000000000000000000000EXAMPLE`,
};

export const createKeyBody = z.strictObject({
  name: z
    .string('must be a string')
    .refine(
      (name) => isName(name) && name.trim() !== '',
      `must have 1 to ${MAX_NAME_LENGTH} characters, none of them control characters, and not only spaces`,
    )
    .meta({
      description: 'For the lists of keys, for example the program that uses the key.',
      // Not every reader of the document knows \p{Cc}.
      override: {
        minLength: 1,
        maxLength: MAX_NAME_LENGTH,
        pattern: '^(?=.*[^\\s\\ufeff])[^\\x00-\\x1f\\x7f-\\x9f]*$',
      },
    }),
  scopes: z
    .array(z.enum(SCOPES, `must be one of ${SCOPES.join(', ')}`), 'must be an array')
    .min(1, 'must have at least one scope')
    .meta({ description: 'Scopes that the key of the request has too.' }),
  expiresAt: endTime.optional().meta({
    description:
      'The key ends at this time, in the future and not after the end of the key of the request. Absent: the end of that key, or none.',
  }),
});

export const createKeyExample: z.input<typeof createKeyBody> = {
  name: 'research laptop',
  scopes: ['markets:read', 'alerts'],
};

export const keyStatusParam = listParam(KEY_STATUSES, 'The state of the keys.');
