/** The completeness of the stored trades of a venue, in `/v1/venues`. */
export interface Completeness {
  /** The share of the venue's volume that the stored trades cover; absent before the first comparison. */
  share?: number;
  since?: number;
  /** Markets that were compared. */
  markets: number;
  /** Markets whose stored trades fall short of the venue's totals by more than the tolerance. */
  markets_missing: number;
  missing_since?: number;
}

export interface ComparedVenue {
  venue: string;
  completeness?: Completeness;
}

/** The venues that report lost trades, one line each. */
export function alarmsOf(venues: readonly ComparedVenue[]): string[] {
  return venues.flatMap(({ venue, completeness }) => {
    if (completeness === undefined || completeness.markets_missing === 0) return [];
    return [`${venue}: ${completeness.markets_missing} of ${completeness.markets} markets`];
  });
}

/** The venues whose trades no comparison covers yet: without an alarm they prove nothing. */
export function uncomparedVenues(venues: readonly ComparedVenue[]): string[] {
  return venues.filter(({ completeness }) => completeness?.share === undefined).map(({ venue }) => venue);
}
