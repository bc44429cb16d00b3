import { ARCHIVE_KIND_NAMES, type ArchiveKind } from '../../domain/archive/kinds.ts';
import { VENUE_NAMES, VENUES, type VenueName } from '../../domain/markets/venue.ts';

/** The kinds that a venue has. */
function kindsOf(venue: VenueName): ArchiveKind[] {
  const { markets, trades, prices, books, tokens } = VENUES[venue].capabilities;
  const has = {
    trades,
    candles: trades,
    prices: prices || tokens,
    books,
    markets,
    resolutions: markets,
    coverage: true,
  };
  return ARCHIVE_KIND_NAMES.filter((kind) => has[kind]);
}

/** The kinds of all venues, also of those that are disabled by now. */
export function archivedPairs(kinds: readonly ArchiveKind[]): { kind: ArchiveKind; venue: VenueName }[] {
  return VENUE_NAMES.flatMap((venue) =>
    kindsOf(venue)
      .filter((kind) => kinds.includes(kind))
      .map((kind) => ({ kind, venue })),
  );
}
