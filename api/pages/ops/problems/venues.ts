import type { OpsPoll } from '../../../../src/store/ops/venues.ts';
import { isScheduledPoll } from '../../../reads/poll-health.ts';
import type { EnabledVenue } from '../../../reads/venue-catalog.ts';
import { clock, duration, type Html, html } from '../../kit/html.ts';
import { count, isOverloaded, isTroubled, type OpsProblem, type ProblemFacts } from './facts.ts';

/** A feed connects again within seconds. */
const CONNECTING_MS = 60_000;

export function failingVenues({ venues, polls, processes, nowMs }: ProblemFacts): OpsProblem[] {
  const isPollerLate = processes.some((row) => row.process === 'poller' && isOverloaded(row));
  return venues.flatMap(({ venue, title, pollMs }): OpsProblem[] => {
    const own = polls.filter((poll) => poll.venue === venue);
    if (own.length === 0) {
      const sentence = `${title} was never polled: no poller of this venue runs.`;
      const affects = `Everything of ${title}: nothing is read.`;
      return [
        {
          since: null,
          sentence,
          affects,
          action: 'Start a poller.',
          link: venueLink(venue),
          area: 'venues',
          isLate: true,
        },
      ];
    }
    const troubled = own.filter((poll) => isTroubled(poll, pollMs, nowMs));
    // The poll with the oldest success names the reason; others usually share it.
    const at = ({ lastSuccessAt }: OpsPoll) => lastSuccessAt?.getTime() ?? 0;
    const [worst] = troubled.toSorted((a, b) => at(a) - at(b));
    if (worst === undefined) return [];
    const { lastError, consecutiveFailures, kind } = worst;
    const kinds = troubled.map((poll) => poll.kind).join(', ');
    // A late process leaves a reason that does not count as a failure.
    const isLate = consecutiveFailures === 0;
    const problem = isLate ? 'is late' : 'fails';
    const inARow = isLate ? '' : `, ${count(consecutiveFailures, 'failure', 'failures')} in a row`;
    const story = failureStory(troubled, nowMs);
    const last = lastError !== null && html` <q>${lastError}</q> (${kind}${inARow}).`;
    return [
      {
        since: story?.since ?? worst.lastSuccessAt,
        sentence: html`${title} ${problem}${isLate && isPollerLate && ' while the poller is overloaded'}: ${kinds}.${story ? html` ${story.text}` : last} ${nextAttempt(worst, pollMs, nowMs)}`,
        affects: AFFECTED.filter(([name]) => troubled.some((poll) => poll.kind === name))
          .map(([, text]) => text)
          .join(' '),
        action: isLate
          ? 'Look whether the poller has time and the database answers.'
          : 'Compare with the status page of the venue; the polls repeat by themselves.',
        link: venueLink(venue),
        area: 'venues',
        ...(isLate && { isLate }),
      },
    ];
  });
}

const AFFECTED = [
  ['markets', 'New markets and changed states are missing.'],
  ['prices', 'Prices are old.'],
  ['books', 'Books are old.'],
  ['trades', 'Trades, candles and volume are incomplete until the polls have caught up.'],
] as const;

function venueLink(venue: string): string {
  return `/ops/venues/${encodeURIComponent(venue)}`;
}

/**
 * The first failure in the present trouble of a venue, and the later ones: undefined without a failure. The first failure is unknown when a
 * run of failures began before it was stored.
 */
export function failureStory(polls: readonly OpsPoll[], nowMs: number): { since: Date | null; text: Html } | undefined {
  const failing = polls.filter(({ consecutiveFailures }) => consecutiveFailures > 0);
  if (failing.length === 0) return undefined;
  const known = failing
    .flatMap((poll) => (poll.failingSince === null ? [] : [{ ...poll, failingSince: poll.failingSince }]))
    .toSorted((a, b) => a.failingSince.getTime() - b.failingSince.getTime());
  const [first, ...others] = known;
  const inARow = ({ kind, consecutiveFailures }: OpsPoll) =>
    `${kind}, ${count(consecutiveFailures, 'failure', 'failures')} in a row`;
  if (first === undefined || known.length < failing.length) {
    const [poll = first] = failing.filter(({ failingSince }) => failingSince === null);
    const last = poll && poll.lastError !== null && html`Now <q>${poll.lastError}</q> (${inARow(poll)}). `;
    return {
      since: null,
      text: html`${last}What failed first is unknown: the trouble is older than the record of it.`,
    };
  }
  const then = others.map(({ kind, failingSince }) => html` Then ${kind} at ${clock(failingSince, nowMs)}.`);
  const now = first.lastError !== null && first.lastError !== first.firstError && html` Now <q>${first.lastError}</q>.`;
  return {
    since: first.failingSince,
    text: html`First failed ${first.kind} at ${clock(first.failingSince, nowMs)} UTC: <q>${first.firstError ?? 'unknown'}</q> (${inARow(first)}).${then}${now}`,
  };
}

/** Polls store the same prices, so a feed without data costs freshness only. */
export function troubledFeeds({ venues, feeds, gapsSince, nowMs }: ProblemFacts): OpsProblem[] {
  return venues.flatMap(({ venue, title }): OpsProblem[] => {
    const feed = feeds.get(venue);
    if (feed === undefined) return [];
    const { state, reason: why, connectingSince, connectingReason } = feed;
    const warning = (problem: string, since: Date | null, detail: string | null): OpsProblem[] => {
      const cause = detail !== null && html` (<code>${detail}</code>)`;
      const sentence = html`The feed of ${title} ${problem}${cause}. Prices come from polls.`;
      const affects = 'Prices are as old as the polls make them; no trade is lost.';
      const action =
        state === 'refused'
          ? 'Check the credentials of the venue.'
          : 'Nothing, if it recovers; else look at the log of the streamer.';
      return [{ since, sentence, affects, action, link: '/ops/venues', area: 'venues', tone: 'warn' }];
    };
    if (state === 'silent') return warning('sends no data', gapsSince.get(venue) ?? null, why);
    if (state === 'given_up') {
      const wait = feed.nextTryAt
        ? `, and tries again in ${duration(Math.max(0, feed.nextTryAt.getTime() - nowMs))}`
        : '';
      return warning(`loses changes of every market${wait}`, gapsSince.get(venue) ?? null, why);
    }
    if (state === 'refused') return warning('refuses the credentials', null, why);
    if (connectingSince === null || nowMs - connectingSince.getTime() <= CONNECTING_MS) return [];
    return warning('does not connect', connectingSince, connectingReason);
  });
}

/** The next turn of the scheduler, estimated from the last attempt. */
function nextAttempt(
  { kind, lastAttemptAt, isInFlight }: OpsPoll,
  pollMs: EnabledVenue['pollMs'],
  nowMs: number,
): string {
  if (isInFlight) return 'An attempt is in flight.';
  if (lastAttemptAt === null || !isScheduledPoll(kind, pollMs)) return '';
  const leftMs = lastAttemptAt.getTime() + pollMs[kind] - nowMs;
  return leftMs <= 0 ? 'The next attempt is due.' : `The next attempt is in ${duration(leftMs)}.`;
}
