import { z } from 'zod';
import { count, epochTime } from './wire.ts';

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
