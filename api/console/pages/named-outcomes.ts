import { type NamedOutcome, nameOutcomes } from '../../../src/store/catalog/outcome-names.ts';
import type { ApiDeps } from '../../deps.ts';

export type Names = ReadonlyMap<string, NamedOutcome>;

/** The names of outcomes by id; tokens without a market have none. */
export async function namesOf({ db }: Pick<ApiDeps, 'db'>, tokens: readonly (string | undefined)[]): Promise<Names> {
  const ids = [...new Set(tokens)].filter((each) => each !== undefined);
  const named = ids.length === 0 ? [] : await nameOutcomes(db, ids);
  return new Map(named.map((outcome) => [outcome.outcomeId, outcome]));
}
