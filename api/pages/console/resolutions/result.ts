import {
  DISPUTABLE_RESULTS,
  type ResolutionState,
  type ResolutionTransition,
} from '../../../../src/domain/markets/resolution.ts';
import { badge, facts, type Html, html, NONE, type Tone, table } from '../../kit/html.ts';
import type { Decimal, Market, Resolution } from '../answers.ts';
import { fromSeconds, minute, price } from '../values.ts';

type TimelineRow = Resolution['timeline'][number];
type Outcomes = readonly { outcome_id: string; label: string }[];
type Payouts = readonly { outcome_id: string; payout: Decimal }[] | null;

const STATE_WORDS: Readonly<Record<ResolutionState, string>> = {
  none: 'No result is proposed.',
  proposed: 'A result is proposed. It is not final.',
  disputed: 'The result is disputed. It is not final.',
  resolved: 'The venue has determined the result.',
  settled: 'The result is paid.',
  voided: 'The market ended without a result.',
  unknown: 'The venue states something that oddswire does not know.',
};

const RESULT_TONES: Readonly<Record<ResolutionState, Tone>> = {
  none: 'idle',
  proposed: 'warn',
  disputed: 'bad',
  resolved: 'good',
  settled: 'good',
  voided: 'idle',
  unknown: 'warn',
};

const REASON_WORDS: Readonly<Record<NonNullable<Resolution['reason']>, string>> = {
  no_result: 'No result, so no payouts.',
  not_stated: 'The venue states no payouts.',
  unknown_value: 'The venue states a value that oddswire does not know.',
  incomplete: 'The venue states the payouts of some outcomes only.',
  sum_not_one: 'The payouts do not add up to one.',
  refund: 'The venue pays the stakes back.',
};

const SOURCE_WORDS: Readonly<Record<TimelineRow['source'], string>> = {
  route: 'stated as present',
  history: 'named as earlier',
  feed: 'announced by the feed',
};

/** These rows state no payouts by their nature. */
const WITHOUT_PAYOUTS: ReadonlySet<ResolutionTransition> = new Set(['disputed', 'reopened', 'unknown']);

/** The section of a market page about its result: state, payouts and timeline. */
export function resultSection({ venue, outcomes }: Market, { state, payouts, reason, timeline }: Resolution): Html {
  const mayBeDisputed = state === 'resolved' && DISPUTABLE_RESULTS.includes(venue);
  return html`<section aria-labelledby="result-title"><h2 id="result-title">Result</h2>
<p>${state !== 'none' && html`${badge(RESULT_TONES[state], state)} `}${STATE_WORDS[state]}${
    mayBeDisputed && ' It can be disputed until it is paid.'
  }</p>
${
  payouts !== null &&
  facts(payouts.map(({ outcome_id: id, payout }) => [`Payout, ${labelOf(outcomes, id)}`, price(payout)]))
}
${reason !== undefined && reason !== 'no_result' && html`<p class="muted">${REASON_WORDS[reason]}</p>`}
${state !== 'none' && timeline.length === 0 && html`<p class="muted">A former release stored this result without its steps.</p>`}
${timeline.length > 0 && timelineTable(outcomes, timeline)}</section>`;
}

function timelineTable(outcomes: Outcomes, timeline: readonly TimelineRow[]): Html {
  return table<TimelineRow>({
    caption: 'Steps of the result, oldest first',
    columns: [
      { label: 'Step', cell: (row) => stepCell(row) },
      { label: 'Round', isNumeric: true, cell: ({ round }) => round ?? NONE },
      { label: 'Venue’s time (UTC)', isNumeric: true, cell: ({ at }) => minute(fromSeconds(at)) },
      { label: 'Received (UTC)', isNumeric: true, cell: (row) => minute(fromSeconds(row.received_at)) },
      { label: 'Source', cell: ({ source }) => SOURCE_WORDS[source] },
      { label: 'Payouts', cell: (row) => payoutCell(outcomes, row) },
    ],
    rows: timeline,
    empty: '',
  });
}

/** A step with the facts of the venue about it. */
export function stepCell({
  transition,
  state,
  raw_state: word,
  observed_value: value,
}: Pick<TimelineRow, 'transition' | 'state' | 'raw_state' | 'observed_value'>): Html {
  return html`${badge(RESULT_TONES[state], transition)}${word !== undefined && html`<span class="where long">“${word}”</span>`}${
    value !== undefined && html`<span class="where long">value ${value}</span>`
  }`;
}

/** The outcomes that are paid, or why none is stated. */
export function payoutCell(
  outcomes: Outcomes,
  {
    transition,
    payouts,
    reason,
  }: { transition: ResolutionTransition; payouts: Payouts; reason?: Resolution['reason'] },
): Html {
  if (payouts === null) {
    if (reason === undefined || WITHOUT_PAYOUTS.has(transition)) return NONE;
    return html`<span class="muted">${REASON_WORDS[reason]}</span>`;
  }
  const paid = payouts.filter(({ payout }) => Number(payout) !== 0);
  return html`${
    paid.length === 0
      ? 'nothing'
      : paid.map(
          ({ outcome_id: id, payout }, index) =>
            html`${index > 0 && ', '}<span class="long">${labelOf(outcomes, id)}</span>\u00a0${price(payout)}`,
        )
  }${reason !== undefined && html` <span class="muted">${REASON_WORDS[reason]}</span>`}`;
}

function labelOf(outcomes: Outcomes, outcomeId: string): string {
  return outcomes.find(({ outcome_id: id }) => id === outcomeId)?.label || outcomeId;
}
