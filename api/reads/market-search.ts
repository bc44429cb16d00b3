import { InvalidCursorError } from '../../src/domain/values/cursor.ts';
import { rowPresenter } from '../../src/domain/wire/fields.ts';
import { MARKET } from '../../src/domain/wire/market-data.ts';
import type { StoredMarket } from '../../src/store/catalog/market-reads.ts';
import type { SearchPlace } from '../../src/store/catalog/market-search.ts';
import type { MarketBody } from '../contract/market.ts';

export const presentMarket: (market: StoredMarket) => MarketBody = rowPresenter(MARKET);

/** A search place in the form of a cursor. */
export function toPosition(place: SearchPlace): string[] {
  const { tier, pk } = place;
  return tier === 'similar' ? [tier, pk, place.similarity, String(place.threshold)] : [tier, pk];
}

/** The inverse of `toPosition`. @throws InvalidCursorError for another kind, for example from an earlier version. */
export function toPlace([tier, pk = '', similarity = '', threshold = '']: readonly string[]): SearchPlace {
  switch (tier) {
    case 'id':
    case 'title':
    case 'title-words':
    case 'words':
    case 'names':
      return { tier, pk };
    case 'similar':
      return { tier, pk, similarity, threshold: Number(threshold) };
    default:
      throw new InvalidCursorError();
  }
}
