import { type NamedOutcome, nameOutcomes } from '../../../src/store/catalog/outcome-names.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { ConsoleRequest } from './route.ts';

/** The name of an outcome. `price`: null before the first one; absent for a key that may not read prices. */
export type Name = Omit<NamedOutcome, 'price'> & { price?: string | null };
export type Names = ReadonlyMap<string, Name>;

/**
 * The names of outcomes by id; tokens without a market have none. Every key that may see an alert or an event gets the name of its
 * market. Its price needs the scope of the routes that serve prices.
 */
export async function namesOf(
  { db }: Pick<PageDeps, 'db'>,
  { session }: Pick<ConsoleRequest, 'session'>,
  tokens: readonly (string | undefined)[],
): Promise<Names> {
  const ids = [...new Set(tokens)].filter((each) => each !== undefined);
  const named = ids.length === 0 ? [] : await nameOutcomes(db, ids);
  const hasPrices = session.caller.scopes.includes('markets:read');
  return new Map(named.map(({ price, ...name }) => [name.outcomeId, { ...name, ...(hasPrices && { price }) }]));
}
