import type { MarketRecord } from '../domain/markets/market.ts';
import { isStorableText } from '../domain/values/text.ts';

/** The first field of a market whose text Postgres cannot store, if any. */
export function unstorableField(record: MarketRecord): string | undefined {
  for (const [field, value] of Object.entries(record)) {
    if (typeof value === 'string' && !isStorableText(value)) return field;
  }
  if (!record.tags.every(isStorableText)) return 'tags';
  return record.outcomes.every((each) => isStorableText(each.label)) ? undefined : 'outcomes';
}
