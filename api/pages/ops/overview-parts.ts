import { shownUrl } from '../../../src/domain/webhooks/url.ts';
import type { UndecidedMarkets } from '../../../src/store/catalog/undecided-markets.ts';
import type { FeedReport } from '../../../src/store/feeds/streamers.ts';
import {
  type DeliveryLoad,
  type FailingEndpoint,
  MAX_COUNTED_DUE,
  type StageBacklog,
  THROUGHPUT_MINUTES,
  type Throughput,
  type ThroughputKind,
} from '../../../src/store/ops/overview.ts';
import type { OpsPoll } from '../../../src/store/ops/venues.ts';
import { type RefoldProgress, refoldShare } from '../../../src/store/series/candle-refold.ts';
import { isIdlePoll, isScheduledPoll } from '../../reads/poll-health.ts';
import { barScale, bars } from '../kit/drawings.ts';
import { ago, badge, code, duration, emptyState, type Html, html, longText, NONE, number, table } from '../kit/html.ts';
import { endpointName } from '../kit/shown-values.ts';
import { isLateStage, isTroubled, OVERDUE_MS, type ProblemFacts, STAGE_NAME } from './problems/facts.ts';
import { failureStory } from './problems/venues.ts';
import { feedBadge } from './venue-feeds.ts';

const LABELS: Readonly<Record<ThroughputKind, string>> = {
  trades: 'Trades',
  priceChanges: 'Price changes',
  events: 'Events',
  attempts: 'Delivery attempts',
};

/** The charts of the last hour. */
export function throughputCharts(rates: Throughput): Html {
  return html`<div class="grid">${Object.entries(LABELS).map(([kind, label]) => {
    const values = rates[kind as ThroughputKind];
    const known = values.filter((value) => value !== null);
    const latest = values.at(-1) ?? known.at(-1);
    const highest = known.length === 0 ? null : Math.max(...known);
    const scale = barScale(values);
    const isCut = highest !== null && highest > scale;
    const words = `${label} per minute over the last hour: ${
      latest === undefined ? 'no samples yet' : `${perMinute(latest)} now, peak ${perMinute(highest ?? 0)}`
    }${isCut ? `; bars above ${perMinute(scale)} are cut` : ''}`;
    return html`<div class="card"><h3>${label}</h3>
<span class="figure">${latest === undefined ? NONE : perMinute(latest)} <small>per minute</small></span>
${bars(values, words, scale)}
<div class="axis" aria-hidden="true"><span>−${THROUGHPUT_MINUTES} min</span><span>${
      highest === null ? 'no samples yet' : `peak ${perMinute(highest)}${isCut ? ', cut' : ''}`
    }</span><span>now</span></div></div>`;
  })}</div>`;
}

function perMinute(rate: number): string {
  return rate.toLocaleString('en-US', { maximumFractionDigits: rate < 10 ? 1 : 0 });
}

/** A card per venue with the age of its stalest poll. */
export function venueCards(
  { polls, venues, feeds, undecided }: Pick<ProblemFacts, 'polls' | 'venues' | 'feeds'> & UndecidedFacts,
  nowMs: number,
): Html {
  if (venues.length === 0) return emptyState('No venue is enabled. Set VENUES to enable venues.');
  return html`<div class="grid small">${venues.map(({ venue, title, pollMs }) => {
    const scheduled = polls.filter((poll) => poll.venue === venue && isScheduledPoll(poll.kind, pollMs));
    const [stalest] = scheduled.toSorted((a, b) => ranAt(a) - ranAt(b));
    const unhealthy = scheduled.filter((poll) => isTroubled(poll, pollMs, nowMs));
    const feed = feeds.get(venue);
    const at = stalest === undefined || ranAt(stalest) === 0 ? null : ranAt(stalest);
    return html`<div class="card"><h3><a href="/ops/venues/${encodeURIComponent(venue)}">${title}</a></h3>
<span class="figure">${at === null ? NONE : duration(Math.max(0, nowMs - at))} <small>${
      stalest === undefined
        ? 'never polled'
        : at === null
          ? `${stalest.kind}: no success yet`
          : `since the last success of ${stalest.kind}`
    }</small></span>
<p class="under">${
      scheduled.length === 0
        ? badge('idle', 'not polled yet')
        : unhealthy.length === 0
          ? badge('good', 'healthy')
          : html`${badge('bad', 'unhealthy')} <span class="muted">${unhealthy.map(({ kind }) => kind).join(', ')}</span>`
    }</p>${storyLine(unhealthy, nowMs)}${feed && feedLine(feed)}${waitingLine(undecided.get(venue), nowMs)}</div>`;
  })}</div>`;
}

/** The first failure. */
function storyLine(unhealthy: readonly OpsPoll[], nowMs: number): Html | undefined {
  const story = failureStory(unhealthy, nowMs);
  return story && html`<p class="under long">${story.text}</p>`;
}

/** The markets of each venue that wait for their result. */
export interface UndecidedFacts {
  undecided: ReadonlyMap<string, UndecidedMarkets>;
}

function waitingLine(waiting: UndecidedMarkets | undefined, nowMs: number): Html | false {
  if (waiting === undefined || waiting.since === null) return false;
  const { markets, since } = waiting;
  return html`<p class="under">Without a result: ${number(markets)} <span class="muted">${markets === 1 ? 'market' : 'markets'}, the first for ${duration(Math.max(0, nowMs - since.getTime()))}</span></p>`;
}

function feedLine({ state, messagesPerSecond }: FeedReport): Html {
  const rate = state === 'live' && html` <span class="muted">${perMinute(messagesPerSecond)} messages/s</span>`;
  return html`<p class="under">Feed: ${feedBadge(state)}${rate}</p>`;
}

/** Epoch milliseconds; 0 before the first success. */
function ranAt(poll: OpsPoll): number {
  return (isIdlePoll(poll) ? poll.idleAt : poll.lastSuccessAt)?.getTime() ?? 0;
}

/** The load of the deliverers. */
export function deliveryCards({ due, inFlight, oldestOverdueMs }: DeliveryLoad): Html {
  const isLate = oldestOverdueMs !== null && oldestOverdueMs > OVERDUE_MS;
  return html`<div class="grid small">
<div class="card"><h3>Due or in flight</h3><span class="figure">${
    due > MAX_COUNTED_DUE ? html`${number(MAX_COUNTED_DUE)}+` : number(due)
  }</span><p class="under muted">attempts</p></div>
<div class="card"><h3>In flight</h3><span class="figure">${number(inFlight)}</span><p class="under muted">claimed by a deliverer</p></div>
<div class="card"><h3>Oldest overdue</h3><span class="figure">${
    oldestOverdueMs === null ? NONE : duration(oldestOverdueMs)
  }</span><p class="under">${
    oldestOverdueMs === null ? badge('good', 'no backlog') : isLate ? badge('bad', 'late') : badge('good', 'on time')
  }</p></div></div>`;
}

/** The endpoints without a success, longest failure first. */
export function failingTable(endpoints: readonly FailingEndpoint[], nowMs: number): Html {
  return table<FailingEndpoint>({
    caption: 'Failing endpoints, longest failure first',
    columns: [
      {
        label: 'Endpoint',
        cell: ({ id, url }) =>
          html`<a class="long" href="/ops/webhooks/${encodeURIComponent(id)}" title="${shownUrl(url)}">${endpointName(url)}</a>`,
      },
      { label: 'Account', cell: ({ account }) => longText(account) },
      { label: 'Failing since', cell: ({ failingSince }) => ago(failingSince, nowMs) },
      { label: 'Exhausted', cell: ({ exhausted }) => number(exhausted), isNumeric: true },
      { label: 'State', cell: ({ status }) => badge(status === 'paused' ? 'idle' : 'warn', status) },
      {
        label: 'Last error',
        cell: ({ lastError, lastStatusCode }) =>
          html`${lastStatusCode !== null && html`<span class="num">${lastStatusCode}</span> `}${code(lastError)}`,
      },
    ],
    rows: endpoints,
    empty: 'No endpoint is failing.',
  });
}

/** The pending marks of each stage. */
export function stageTable(backlogs: readonly StageBacklog[]): Html {
  return table<StageBacklog>({
    caption: 'Pending marks of each stage',
    columns: [
      { label: 'Stage', cell: ({ stage }) => html`${STAGE_NAME[stage] ?? stage} <code class="muted">${stage}</code>` },
      { label: 'Pending', cell: ({ waiting }) => number(waiting), isNumeric: true },
      {
        label: 'Oldest',
        cell: ({ oldestMs }) => (oldestMs === null ? NONE : oldestText(oldestMs)),
      },
      { label: 'Dead-lettered', cell: ({ deadLetters }) => number(deadLetters), isNumeric: true },
      { label: 'State', cell: stageState },
    ],
    rows: backlogs,
    empty: 'No stage exists.',
  });
}

/** The age is a minimum, so that a mark without a full minute may wait for nearly two. */
function oldestText(oldestMs: number | 'unknown'): string {
  if (oldestMs === 'unknown') return 'unknown';
  return oldestMs < 60_000 ? 'less than 2 min' : duration(oldestMs);
}

function stageState(backlog: StageBacklog): Html {
  if (isLateStage(backlog)) return badge('bad', 'late');
  if (backlog.oldestMs === 'unknown') return badge('warn', 'age unknown');
  return backlog.deadLetters > 0 ? badge('warn', 'dead letters') : badge('good', 'on time');
}

/** The unfinished passes over stored candles after an upgrade. */
export function refoldProgressLines(passes: readonly RefoldProgress[]): Html {
  const open = passes.filter(({ isFinished }) => !isFinished);
  return html`${open.map(
    (each) =>
      html`<p class="under">Refold of stored candles, pass ${each.pass} of ${passes.length}: ${Math.floor(
        refoldShare(each) * 100,
      )} % · ${number(each.minutes)} minutes marked</p>`,
  )}`;
}
