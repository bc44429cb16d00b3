import type { MarketRecord, OutcomeRecord } from '../domain/markets/market.ts';
import type { AnnouncedTimes, PayoutReason, ResolutionStep } from '../domain/markets/resolution.ts';
import { isStorableText, scrubText } from '../domain/values/text.ts';
import type { UnknownValue } from './parsed-batch.ts';
import { MAX_AHEAD_MS } from './venue-time.ts';

interface PastTimes {
  createdAtMs: number | undefined;
  resolvedAtMs: number | undefined;
}

/**
 * The creation and the resolution of a market, without impossible times: in the future, or a resolution before the creation. Such a time is
 * reported as an unknown value and dropped; its market stays. Openings and closes are plans. Venues do send closes before the opening or
 * the creation, so these times stay as they are.
 */
export function pastTimes(times: PastTimes, nowMs: number, unknowns: UnknownValue[]): PastTimes {
  const past = (field: keyof PastTimes, fromMs: number): number | undefined => {
    const ms = times[field];
    if (ms === undefined || (ms >= fromMs && ms <= nowMs + MAX_AHEAD_MS)) return ms;
    unknowns.push({ field, value: new Date(ms).toISOString() });
    return undefined;
  };
  const createdAtMs = past('createdAtMs', Number.NEGATIVE_INFINITY);
  return { createdAtMs, resolvedAtMs: past('resolvedAtMs', createdAtMs ?? Number.NEGATIVE_INFINITY) };
}

/** The times of a result that a feed announced, in whole milliseconds, without times in the future: a poll reads the result in any case. */
export function announcedTimes(times: AnnouncedTimes, nowMs: number): AnnouncedTimes {
  const past = Object.entries(times).filter(([, ms]) => ms <= nowMs + MAX_AHEAD_MS);
  return Object.fromEntries(past.map(([state, ms]) => [state, Math.floor(ms)]));
}

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

/** The first field of a market whose text Postgres cannot store, if any. */
export function unstorableField(record: MarketRecord): string | undefined {
  for (const [field, value] of Object.entries(record)) {
    if (typeof value === 'string' && !isStorableText(value)) return field;
  }
  if (!record.tags.every(isStorableText)) return 'tags';
  return record.outcomes.every((each) => isStorableText(each.label)) ? undefined : 'outcomes';
}

const MAX_WORD_LENGTH = 100;

/** The payouts of these outcomes in their order, or the reason for which none is known. */
export function statedPayouts(
  outcomes: readonly Pick<OutcomeRecord, 'outcomeId' | 'payout'>[],
  reason: PayoutReason = 'not_stated',
): Pick<ResolutionStep, 'payouts' | 'reason'> {
  const payouts = outcomes.flatMap(({ outcomeId, payout }) => (payout === undefined ? [] : [{ outcomeId, payout }]));
  return payouts.length > 0 ? { payouts } : { reason };
}

/** A state under a word of the venue that is not known. A word that Postgres cannot store must not reject its market. */
export function unknownStep(word: string): ResolutionStep {
  return { state: 'unknown', facts: { rawState: scrubText(word.slice(0, MAX_WORD_LENGTH)) } };
}
