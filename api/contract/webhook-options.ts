import { z } from 'zod';
import { CHAT_FORMATS, chatUrlProblem, WEBHOOK_FORMATS } from '../../src/domain/chat/chat-url.ts';
import { FIELD_PATTERN, MAX_CONDITIONS, MAX_LISTED, MAX_TEXT, OPERATORS } from '../../src/domain/webhooks/filter.ts';
import {
  HEADER_PATTERNS,
  headerProblems,
  MAX_HEADER_NAME,
  MAX_HEADER_VALUE,
  MAX_HEADERS,
} from '../../src/domain/webhooks/headers.ts';
import { ORDER_BY } from '../../src/domain/webhooks/order.ts';

const text = z.string().max(MAX_TEXT, `must have at most ${MAX_TEXT} characters`);
const value = z.union(
  [text, z.number(), z.boolean()],
  `must be a text of at most ${MAX_TEXT} characters, a number, true or false`,
);
const bound = z.number('must be a number of at most 15 digits').optional();

const condition = z
  .strictObject({
    field: z
      .string('must be a string')
      .regex(new RegExp(FIELD_PATTERN), 'must be "type", or a path such as "data.venue"')
      .meta({ description: '`type`, or a path of at most four names below `data`.' }),
    equal: value.optional().meta({ description: 'The value is the same.' }),
    in: z
      .array(value, 'must be an array')
      .min(1, 'must have at least one value')
      .max(MAX_LISTED, `must have at most ${MAX_LISTED} values`)
      .optional()
      .meta({ description: 'The value is one of these.' }),
    above: bound.meta({ description: 'The value is a number of at least this.' }),
    below: bound.meta({ description: 'The value is a number of at most this.' }),
    exists: z.boolean('must be true or false').optional().meta({ description: 'Whether the field is present.' }),
  })
  .superRefine((given, context) => {
    const operators = OPERATORS.filter((operator) => given[operator] !== undefined);
    if (operators.length !== 1) {
      context.addIssue({ code: 'custom', message: `must have exactly one of ${OPERATORS.join(', ')}` });
    }
  })
  .meta({ description: 'A field and exactly one operator.', override: { minProperties: 2, maxProperties: 2 } });

const filter = z
  .array(condition, 'must be an array')
  .min(1, 'must have at least one condition')
  .max(MAX_CONDITIONS, `must have at most ${MAX_CONDITIONS} conditions`)
  .meta({ description: 'Only events that match every condition make a delivery.' });

const headers = z
  .record(z.string(), z.string('must be a string'), 'must be an object of names and values')
  .superRefine((given, context) => {
    for (const { name, message } of headerProblems(given)) {
      context.addIssue({ code: 'custom', path: name === undefined ? [] : [name], message });
    }
  })
  .meta({
    description: 'Headers of every request, beside those of oddswire. No answer shows their values.',
    override: {
      maxProperties: MAX_HEADERS,
      propertyNames: { type: 'string', maxLength: MAX_HEADER_NAME, pattern: HEADER_PATTERNS.name },
      additionalProperties: { type: 'string', maxLength: MAX_HEADER_VALUE, pattern: HEADER_PATTERNS.value },
    },
  });

const LIMITS = { min: 0.1, max: 1_000 };
const OUT_OF_LIMITS = `must be a number from ${LIMITS.min} to ${LIMITS.max}`;
const maxPerSecond = z
  .number(OUT_OF_LIMITS)
  .min(LIMITS.min, OUT_OF_LIMITS)
  .max(LIMITS.max, OUT_OF_LIMITS)
  .meta({ description: 'Attempts per second, over all deliverers.' });

const description = z
  .string('must be a string')
  .max(500, 'must have at most 500 characters')
  .meta({ description: 'A note of the owner.' });

const format = z
  .enum(WEBHOOK_FORMATS, `must be one of ${WEBHOOK_FORMATS.join(', ')}`)
  .meta({ description: 'The event with signatures (`json`), or a message of a chat service. Default: `json`.' });

/** The options in an answer. */
export const shownOptions = {
  ordered: z.literal(true).optional().meta({ description: 'Events of one key arrive in order.' }),
  orderBy: z.enum(ORDER_BY).optional().meta({ description: 'The key of the order.' }),
  filter: filter.optional(),
  maxPerSecond: maxPerSecond.optional(),
  headerNames: z.array(z.string()).optional().meta({ description: 'The names of the additional headers.' }),
  description: description.optional(),
  format: z.enum(CHAT_FORMATS).optional().meta({ description: 'The chat service. `url` then shows its host only.' }),
};

/** The options of a body; docs/webhook-options.md describes them. */
const options = {
  ordered: z
    .boolean('must be true or false')
    .optional()
    .meta({ description: 'Whether events of one key arrive one after another.' }),
  orderBy: z
    .enum(ORDER_BY, `must be one of ${ORDER_BY.join(', ')}`)
    .optional()
    .meta({ description: 'The key of the order, with `ordered: true`. Default: `market`.' }),
};
export const createOptions = {
  ...options,
  filter: filter.optional(),
  maxPerSecond: maxPerSecond.optional(),
  headers: headers.optional(),
  description: description.optional(),
  format: format.optional(),
};
/** Null removes an option. */
export const updateOptions = {
  ...options,
  filter: filter.nullable().optional(),
  maxPerSecond: maxPerSecond.nullable().optional(),
  headers: headers.nullable().optional(),
  description: description.nullable().optional(),
  format: format.optional(),
};

/** The options of a body, after its check. */
export type OptionsBody = z.output<z.ZodObject<typeof updateOptions>> & { url?: string | undefined };

/** Rules over several options. */
export function checkOptions({ ordered, orderBy, format, url }: OptionsBody, context: z.RefinementCtx): void {
  if (orderBy !== undefined && ordered !== true) {
    context.addIssue({ code: 'custom', path: ['orderBy'], message: 'needs "ordered": true' });
  }
  if (format === undefined) return;
  // The URL of another service would be of no use, and one of a chat service is hidden.
  const problem = url === undefined ? 'is needed for another format' : format !== 'json' && chatUrlProblem(format, url);
  if (problem) context.addIssue({ code: 'custom', path: ['url'], message: problem });
}
