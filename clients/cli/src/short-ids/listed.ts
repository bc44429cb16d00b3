import type { Market } from '../../../typescript/src/index.ts';
import type { Call } from '../command.ts';
import { CommandError } from '../exit-codes.ts';
import { titleOf } from '../rows.ts';
import type { KnownMarket } from './known-ids.ts';
import type { IdKind } from './short-id.ts';

type Listed = Pick<Market<string>, 'venue' | 'market_id' | 'title' | 'sibling_label' | 'outcomes'>;

/** Keeps the markets that a command lists, and returns the short ids of them and of their outcomes. */
export async function shortIdsOf(
  call: Call,
  listed: readonly Listed[],
): Promise<(kind: IdKind, venue: string, id: string) => string> {
  const markets = listed.map((market): KnownMarket => {
    const outcomes = market.outcomes.map(({ outcome_id: id, label }) => ({ id, label }));
    return { venue: market.venue, id: market.market_id, title: titleOf(market), outcomes };
  });
  try {
    const known = await call.knownIds();
    await known.keep(markets);
    return (kind, venue, id) => known.shortIdOf(kind, venue, id);
  } catch (error) {
    // The list is worth more than its short ids.
    if (!(error instanceof CommandError)) throw error;
    await call.note(`${error.message}; use whole ids`);
    return () => '';
  }
}
