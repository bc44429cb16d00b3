import { z } from 'zod';
import {
  COVERAGE_CAUSES,
  COVERAGE_CLASSES,
  COVERAGE_KINDS,
  COVERAGE_REASONS,
} from '../../src/domain/markets/coverage.ts';
import { decimalField } from '../../src/domain/values/api-json.ts';
import { DEFAULT_BUCKETS, MAX_BUCKETS } from '../../src/domain/values/time-range.ts';
import { param } from '../http/input.ts';
import { count, decimalValue, epochTime } from './wire.ts';

const share = z.number().min(0).max(1);

/** The share of a market's volume that the stored trades cover. */
export const coverage = z
  .object({
    share: share.meta({ description: "Share of the venue's volume since `since` that the stored trades cover." }),
    since: epochTime.meta({ description: 'Start of the comparison.' }),
    checked_at: epochTime.meta({ description: 'Minute of the latest comparison.' }),
  })
  .meta({ description: "Comparison of the stored trades with the venue's volume." });
export type CoverageBody = z.output<typeof coverage>;
export const coverageExample: CoverageBody = { share: 1, since: 1766966400, checked_at: 1767322980 };

/** The same of all compared markets of a venue. */
export const completeness = z
  .object({
    share: share.optional().meta({
      description:
        "Share of the markets' volume that the stored trades cover. Absent while no compared market has traded.",
    }),
    since: epochTime.meta({ description: 'Start of the oldest comparison.' }),
    checked_at: epochTime.meta({ description: 'Time of the latest comparison.' }),
    comparing: z.boolean().meta({
      description: 'False while the polls of the trades fail or lag: volumes later than `covered_to` are not compared.',
    }),
    covered_to: epochTime.optional().meta({
      description: 'The trades of the venue were read without a gap up to this time. Absent before the first time.',
    }),
    markets: count.meta({ description: 'Compared markets.' }),
    markets_missing: count.meta({ description: 'Markets whose volume proves that trades are missing.' }),
    missing_since: epochTime.optional().meta({ description: 'When the first of these began to miss trades.' }),
  })
  .meta({ description: "Comparison of the stored trades with the venue's volumes." });
export type CompletenessBody = z.output<typeof completeness>;
export const completenessExample: CompletenessBody = {
  share: 1,
  since: 1766966400,
  checked_at: 1767323030,
  comparing: true,
  covered_to: 1767323028,
  markets: 18204,
  markets_missing: 0,
};

const hours = `Epoch seconds, \`[start, end)\`: the hours that begin in it. Default: the last ${DEFAULT_BUCKETS} hours; at most ${MAX_BUCKETS}.`;
export const coverageQuery = z.object({
  start: param.start.meta({ description: hours }),
  end: param.end.meta({ description: hours }),
  kind: z
    .enum(COVERAGE_KINDS, `must be one of ${COVERAGE_KINDS.join(', ')}`)
    .default('trades')
    .meta({ description: 'Candles follow the trades.' }),
  market_id: z
    .string()
    .min(1, 'must not be empty')
    .max(256, 'must have at most 256 characters')
    .optional()
    .meta({ description: "The venue's id of a market. Default: the venue as a whole." }),
  limit: param.limit,
  cursor: param.cursor,
});

/** The coverage of an hour; docs/coverage.md. */
export const coverageHour = z
  .object({
    venue: z.string(),
    start: epochTime.meta({ description: 'Start of the hour, epoch seconds.' }),
    class: z.enum(COVERAGE_CLASSES).meta({
      description:
        '`complete`: no missing volume above `tolerance`. `quiet`: no volume. `observed`: polls without a pause, for kinds without a total. `gap`: data is missing. `unknown`: nothing is proven.',
    }),
    stored: decimalValue.optional().meta({ description: "Stored volume, in the unit of the venue's totals." }),
    total: decimalValue.optional().meta({ description: "The venue's volume is at most this." }),
    missing: decimalValue
      .optional()
      .meta({ description: 'Volume that is missing for certain between `from` and `to`.' }),
    tolerance: decimalValue.optional().meta({ description: 'At most this volume can be missing.' }),
    cause: z.enum(COVERAGE_CAUSES).optional().meta({ description: 'Of a gap.' }),
    reason: z.enum(COVERAGE_REASONS).optional().meta({ description: 'Why nothing is proven.' }),
    longest_pause: z
      .number()
      .optional()
      .meta({ description: 'Longest pause between two successful polls that touches the hour, seconds.' }),
    from: epochTime.optional().meta({ description: 'The evidence or the gap begins here.' }),
    to: epochTime.optional().meta({ description: 'The evidence or the gap ends here.' }),
    markets: count.optional().meta({ description: 'Markets with something to state. Of a venue.' }),
    markets_gap: count.optional().meta({ description: 'Markets with a gap. Of a venue.' }),
    markets_unknown: count.optional().meta({ description: 'Markets whose hour is unknown. Of a venue.' }),
    checked_at: epochTime.optional().meta({ description: 'Time of the comparison. Absent before it.' }),
  })
  .meta({ description: 'Whether the stored data of an hour is complete.' });
export type CoverageHourBody = z.output<typeof coverageHour>;
export const coverageHourExample: CoverageHourBody = {
  venue: 'kalshi',
  start: 1767319200,
  class: 'complete',
  stored: decimalField('18204'),
  total: decimalField('18206'),
  tolerance: decimalField('19.2'),
  markets: 412,
  markets_gap: 0,
  markets_unknown: 0,
  checked_at: 1767324120,
};
export const coverageMeta = z.object({
  kind: z.enum(COVERAGE_KINDS),
  settled_to: epochTime.optional().meta({
    description: 'The hours before this time are judged. Later ones are `unknown` with the reason `not_settled`.',
  }),
  next_cursor: z.string().nullable().meta({ description: 'Null on the last page.' }),
});
