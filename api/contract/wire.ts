import { z } from 'zod';
import type {} from 'zod-openapi';
import type { ExactNumber, JsonText } from '../../src/domain/values/api-json.ts';

/** The format of a schema whose JSON type DECIMAL_FORMAT decides: the document says which. */
export const DECIMAL = 'decimal';

/** A spec `decimal` field: every stored digit, as a JSON number or as a string. */
export const decimalValue = z.custom<ExactNumber<'decimal'>>().meta({ description: 'Exact decimal.', format: DECIMAL });

/** A spec `number` field: every stored digit, a JSON number with both values of DECIMAL_FORMAT. */
export const numberValue = z
  .custom<ExactNumber<'number'>>()
  .meta({ description: 'Exact number.', override: { type: 'number' } });

/** A delivery body as it was stored; see `Event` in event.ts. */
export const storedEvent = z.custom<JsonText>().meta({ override: { $ref: '#/components/schemas/Event' } });

/** Epoch seconds, as on market routes. */
export const epochTime = z.int().min(0).meta({ description: 'Epoch seconds.' });

/** ISO 8601 in UTC with milliseconds, as on account routes. */
export const isoTime = z
  .string()
  .meta({ description: 'ISO 8601, UTC, milliseconds.', override: { type: 'string', format: 'date-time' } });

export const count = z.int().min(0);
/** Ids that clients must not take apart. */
export const opaqueId = z.string().min(1);

/** In `meta` of reads that may make us ask a venue. */
export const coldReads = z.literal('exhausted').optional().meta({
  description:
    'The account has used up its cold reads of this minute: `data` is what is stored, and the venue was not asked for more.',
});
