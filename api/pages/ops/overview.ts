import { shownUrl } from '../../../src/domain/values/parse-url.ts';
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
import type { OpsRouter } from './actions.ts';
import { archiveSection } from './overview-archive.ts';
import { machineTable, processTable } from './overview-machines.ts';
import { isLateStage, isTroubled, OVERDUE_MS, type ProblemFacts, STAGE_NAME } from './problems/facts.ts';
import {
  findProblems,
  headOf,
  type Overview,
  type OverviewDeps,
  type Problems,
  type UndecidedFacts,
} from './problems/read.ts';
import { failureStory } from './problems/venues.ts';
import { feedBadge } from './venue-feeds.ts';

const PATH = '/ops';
const FRAGMENTS_PATH = '/ops/overview.json';
const WELL = 'All is well: every process sends its heartbeat, every venue is fresh, and no backlog waits.';

/** /ops: the current state of the service. A script refreshes it. */
export function overviewPages(
  router: OpsRouter,
  deps: Pick<OverviewDeps, 'archivePlan'> & { problems: Problems },
): void {
  const { read } = deps.problems;
  router.page({
    path: PATH,
    section: 'overview',
    async load({ nowMs }) {
      const shown = fragments(await read(), nowMs);
      const body = html`<div data-refresh="${FRAGMENTS_PATH}">
<div class="state-line"><div data-fragment="state" aria-live="polite">${shown.state}</div><p class="refreshed" data-refreshed aria-live="off"></p></div>
<h2>Throughput</h2><div data-fragment="throughput">${shown.throughput}</div>
<h2>Ingest</h2><div data-fragment="ingest">${shown.ingest}</div>
<h2>Deliveries</h2><div data-fragment="deliveries">${shown.deliveries}</div>
<h2>Failing endpoints</h2><div data-fragment="failing">${shown.failing}</div>
<p class="after"><a href="/ops/webhooks">All webhooks, worst first</a></p>
<h2 id="stages">Stage backlog</h2><div data-fragment="stages">${shown.stages}</div>
${deps.archivePlan && html`<h2 id="archive">Archive</h2><div data-fragment="archive">${shown.archive}</div>`}
<h2 id="machines">Machines</h2><div data-fragment="machines">${shown.machines}</div>
<h2 id="processes">Processes</h2><div data-fragment="processes">${shown.processes}</div>
</div>`;
      return { title: 'Overview', body, scripts: ['refresh.js'] };
    },
  });

  router.data({
    path: FRAGMENTS_PATH,
    async load({ nowMs }) {
      const shown = fragments(await read(), nowMs);
      return Object.fromEntries(Object.entries(shown).map(([name, markup]) => [name, markup.toString()]));
    },
  });
}

function fragments({ facts, throughput, refolds, readAtMs }: Overview, nowMs: number) {
  return {
    state: headOf(findProblems({ ...facts, nowMs }), { nowMs, readAtMs, well: WELL }),
    throughput: throughputCharts(throughput),
    ingest: venueCards(facts, nowMs),
    deliveries: deliveryCards(facts.load),
    failing: failingTable(facts.failing, nowMs),
    stages: html`${stageTable(facts.stages)}${refoldProgressLines(refolds)}`,
    ...(facts.archive && { archive: archiveSection(facts.archive, nowMs) }),
    machines: machineTable(facts.processes),
    processes: processTable(facts.processes, nowMs),
  };
}

const LABELS: Readonly<Record<ThroughputKind, string>> = {
  trades: 'Trades',
  priceChanges: 'Price changes',
  events: 'Events',
  attempts: 'Delivery attempts',
};

/** The charts of the last hour. */
function throughputCharts(rates: Throughput): Html {
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
function venueCards(
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
function deliveryCards({ due, inFlight, oldestOverdueMs }: DeliveryLoad): Html {
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
function failingTable(endpoints: readonly FailingEndpoint[], nowMs: number): Html {
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
function stageTable(backlogs: readonly StageBacklog[]): Html {
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
function refoldProgressLines(passes: readonly RefoldProgress[]): Html {
  const open = passes.filter(({ isFinished }) => !isFinished);
  return html`${open.map(
    (each) =>
      html`<p class="under">Refold of stored candles, pass ${each.pass} of ${passes.length}: ${Math.floor(
        refoldShare(each) * 100,
      )} % · ${number(each.minutes)} minutes marked</p>`,
  )}`;
}
