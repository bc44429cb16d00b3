import { isTapeBehind } from '../../src/domain/markets/trade-tape.ts';
import { coveredShare, flooredShare } from '../../src/domain/markets/volume-witness.ts';
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

/** The range of the latest comparisons of a venue. */
interface Comparing {
  /** The witness compares new volumes. Otherwise the tape is behind, and a total is compared only after its trades were read. */
  isComparing: boolean;
  /** The latest comparison; while the tape is behind no later than its state. */
  checkedAt: Date;
  /** 0 to 1; null while no compared market has traded. */
  share: number | null;
}

/** `pollMs`: the interval of the polls of trades. A walk over the tape that does not end is compared too, with a delay. */
export function comparingOf(venue: VenueCompleteness, nowMs: number, pollMs: number | undefined): Comparing {
  const { caughtUpMs, tapeSuccessMs, checkedAt, share } = venue;
  const isComparing = !isTapeBehind(caughtUpMs, nowMs, pollMs) || !isTapeBehind(tapeSuccessMs, nowMs, pollMs);
  const knownAt = isComparing || caughtUpMs === null ? checkedAt : new Date(Math.min(checkedAt.getTime(), caughtUpMs));
  return { isComparing, checkedAt: knownAt, share: share === null ? null : flooredShare(share) };
}

/** `completeness` of a venue. */
export function presentCompleteness(
  venue: VenueCompleteness | undefined,
  nowMs: number,
  pollMs: number | undefined,
): CompletenessBody | undefined {
  if (venue === undefined || venue.since === null) return undefined;
  const { since, markets, marketsMissing, missingSince, caughtUpMs } = venue;
  const { isComparing, checkedAt, share } = comparingOf(venue, nowMs, pollMs);
  return {
    share: share ?? undefined,
    since: seconds(since),
    checked_at: seconds(checkedAt),
    comparing: isComparing,
    covered_to: caughtUpMs === null ? undefined : Math.floor(caughtUpMs / 1000),
    markets,
    markets_missing: marketsMissing,
    missing_since: missingSince === null ? undefined : seconds(missingSince),
  };
}

function seconds(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}
