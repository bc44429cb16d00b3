import type { MarketRecord } from '../domain/markets/market.ts';
import { isStorableText } from '../domain/values/text.ts';

/** Labels of an outcome do not distinguish a market. */
const OUTCOME_WORDS = /^(yes|no)$/i;

/**
 * The title of a market's event, and the label that distinguishes the market there. The label is absent when it is empty, repeats the title
 * of the market or only names an outcome. Neither field rejects a market: text that Postgres cannot store is absent.
 */
export function siblingFields(
  title: string,
  { eventTitle, label }: { eventTitle?: string | null | undefined; label?: string | null | undefined },
): Pick<MarketRecord, 'eventTitle' | 'siblingLabel'> {
  const trimmed = label?.trim() ?? '';
  const isLabel = trimmed !== '' && isStorableText(trimmed) && trimmed !== title.trim() && !OUTCOME_WORDS.test(trimmed);
  return { ...(eventTitle && isStorableText(eventTitle) && { eventTitle }), ...(isLabel && { siblingLabel: trimmed }) };
}
