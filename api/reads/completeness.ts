import { coveredShare } from '../../src/domain/markets/volume-witness.ts';
import type { VenueCompleteness, Witness } from '../../src/store/series/completeness.ts';
import type { CompletenessBody, CoverageBody } from '../contract/completeness.ts';

/**
 * `coverage` of a market; undefined for a market that was never compared. The time of the comparison is that of its minute: each change
 * makes a new ETag, also of answers about the past.
 */
export function presentMarketCoverage(witness: Witness | null): CoverageBody | undefined {
  if (witness === null) return undefined;
  const { since, comparedAt, venueVolume, storedVolume } = witness;
  const checked_at = Math.floor(seconds(comparedAt) / 60) * 60;
  return { share: coveredShare(storedVolume, venueVolume), since: seconds(since), checked_at };
}

/** `completeness` of a venue. */
export function presentCompleteness(venue: VenueCompleteness | undefined): CompletenessBody | undefined {
  if (venue === undefined || venue.since === null) return undefined;
  const { share, since, checkedAt, markets, marketsMissing, missingSince } = venue;
  return {
    share: coveredShare(share ?? 1, 1),
    since: seconds(since),
    checked_at: seconds(checkedAt),
    markets,
    markets_missing: marketsMissing,
    missing_since: missingSince === null ? undefined : seconds(missingSince),
  };
}

function seconds(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}
