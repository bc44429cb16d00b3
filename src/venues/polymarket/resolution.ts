import type { OutcomeRecord } from '../../domain/markets/market.ts';
import type { ResolutionStep } from '../../domain/markets/resolution.ts';
import { statedPayouts, unknownStep } from '../resolution-steps.ts';
import type { GammaMarket } from './models.ts';

/** The end of a market by its flags and prices. */
interface End {
  isVoid: boolean;
  /** With their payouts, where these are final. */
  outcomes: readonly OutcomeRecord[];
  atMs: number | undefined;
}

/**
 * The steps that Gamma names. `umaResolutionStatus` is the present and `umaResolutionStatuses` the past, in which each `proposed` begins a
 * round. The two may disagree, because the list may be newer or older than the word. The list then ends at its last entry of the present
 * word: an entry behind it is not the present yet, and a further round would be a guess. A list without that word gets it as its last one.
 * Without a word, the last entry of the list is the present.
 */
export function gammaSteps(market: GammaMarket, end: End | undefined): ResolutionStep[] {
  const present = market.umaResolutionStatus?.toLowerCase() ?? '';
  const words = (market.umaResolutionStatuses ?? []).map((word) => word.toLowerCase()).filter(isPendingWord);
  if (end !== undefined) {
    const { isVoid, outcomes, atMs } = end;
    const rounds = roundsOf(words);
    // The round that ended: it tells a later correction, and a late answer, from a new proposal.
    const round = rounds.at(-1)?.round;
    const place = { ...(round !== undefined && { round }), ...(atMs !== undefined && { atMs }) };
    return [...rounds, { state: isVoid ? 'voided' : 'resolved', ...statedPayouts(outcomes), ...place }];
  }
  if (present === '') return roundsOf(words);
  if (!isPendingWord(present)) return [...roundsOf(words), unknownStep(market.umaResolutionStatus ?? '')];
  if (words.length === 0) return [{ state: present }];
  const last = words.lastIndexOf(present);
  return roundsOf(last < 0 ? [...words, present] : words.slice(0, last + 1));
}

type PendingWord = 'proposed' | 'disputed';

function isPendingWord(word: string): word is PendingWord {
  return word === 'proposed' || word === 'disputed';
}

function roundsOf(words: readonly PendingWord[]): ResolutionStep[] {
  let round = 0;
  return words.map((state) => {
    if (state === 'proposed' || round === 0) round += 1;
    return { state, round };
  });
}
