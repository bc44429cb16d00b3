import { briefly } from '../../../src/domain/values/briefly.ts';
import { readiness } from '../../../src/observe/probe-server.ts';
import type { FeedReport } from '../../../src/store/feeds/feed-streamers.ts';
import { type PollAge, pollAges } from '../../../src/store/marks/backlog.ts';
import {
  type DeliveryLoad,
  type FailingEndpoint,
  listFailingEndpoints,
  MAX_COUNTED_DUE,
  readConnections,
  readDeliveryLoad,
  readStageBacklogs,
  readThroughput,
  type StageBacklog,
  THROUGHPUT_MINUTES,
  type Throughput,
  type ThroughputKind,
} from '../../../src/store/ops/overview.ts';
import { type RefoldProgress, refoldProgress, refoldShare } from '../../../src/store/series/candle-refold.ts';
import type { ApiDeps } from '../../deps.ts';
import { readVenueFeeds, type VenueFeeds } from '../../reads/feed-states.ts';
import { isPollHealthy, isScheduledPoll } from '../../reads/poll-health.ts';
import type { EnabledVenue } from '../../reads/venue-catalog.ts';
import { bars } from '../bars.ts';
import { ago, badge, duration, emptyState, type Html, html, longText, NONE, number, table } from '../html.ts';
import type { OpsRouter } from '../ops-route.ts';
import { shownUrl } from './shown-values.ts';
import { feedBadge } from './venue-feeds.ts';

const PATH = '/ops';
const FRAGMENTS_PATH = '/ops/overview.json';
/** Bounds the queries, independent of the number of open pages. */
const FRESH_MS = 2_000;
const MAX_FAILING = 10;
/** An attempt that is overdue for longer means that too few deliverers run. */
const OVERDUE_MS = 60_000;
/** A mark usually waits about a second. An older mark means a stalled stage. */
const STALLED_MS = 120_000;
const PROCESSES = ['api', 'poller', 'aggregator', 'alerter', 'deliverer', 'streamer'] as const;

type OverviewDeps = Pick<ApiDeps, 'db' | 'dependencies' | 'venues' | 'now'>;

interface Overview {
  missing: readonly string[];
  connections: ReadonlyMap<string, number>;
  throughput: Throughput;
  polls: readonly PollAge[];
  feeds: VenueFeeds;
  stages: readonly StageBacklog[];
  refolds: readonly RefoldProgress[];
  load: DeliveryLoad;
  failing: readonly FailingEndpoint[];
}

/** /ops: the current state of the service. A script refreshes it. */
export function overviewPages(router: OpsRouter, deps: OverviewDeps): void {
  const read = briefly(FRESH_MS, () => readOverview(deps));

  router.page({
    path: PATH,
    section: 'overview',
    async load({ nowMs }) {
      const shown = fragments(await read(), deps, nowMs);
      const body = html`<div data-refresh="${FRAGMENTS_PATH}">
<div class="state-line"><div data-fragment="state">${shown.state}</div><p class="refreshed" data-refreshed aria-live="off"></p></div>
<h2>Throughput</h2><div data-fragment="throughput">${shown.throughput}</div>
<h2>Ingest</h2><div data-fragment="ingest">${shown.ingest}</div>
<h2>Deliveries</h2><div data-fragment="deliveries">${shown.deliveries}</div>
<h2>Failing endpoints</h2><div data-fragment="failing">${shown.failing}</div>
<h2>Stage backlog</h2><div data-fragment="stages">${shown.stages}</div>
<h2>Processes</h2><div data-fragment="processes">${shown.processes}</div>
</div>`;
      return { title: 'Overview', body, scripts: ['refresh.js'] };
    },
  });

  router.data({
    path: FRAGMENTS_PATH,
    async load({ nowMs }) {
      const shown = fragments(await read(), deps, nowMs);
      return Object.fromEntries(Object.entries(shown).map(([name, markup]) => [name, markup.toString()]));
    },
  });
}

async function readOverview({ db, dependencies, venues }: OverviewDeps): Promise<Overview> {
  const names = venues.map(({ venue }) => venue);
  const { missing } = await readiness(dependencies);
  const [connections, throughput, polls, feeds, stages, refolds, load, failing] = await Promise.all([
    readConnections(db),
    readThroughput(db),
    pollAges(db, names),
    readVenueFeeds({ db, venues }),
    readStageBacklogs(db),
    refoldProgress(db),
    readDeliveryLoad(db),
    listFailingEndpoints(db, MAX_FAILING),
  ]);
  return { missing, connections, throughput, polls, feeds, stages, refolds, load, failing };
}

function fragments(overview: Overview, deps: OverviewDeps, nowMs: number) {
  return {
    state: state(overview, deps),
    throughput: throughput(overview.throughput),
    ingest: ingest(overview, deps.venues),
    deliveries: deliveries(overview.load),
    failing: failing(overview.failing, nowMs),
    stages: html`${stages(overview.stages)}${refolds(overview.refolds)}`,
    processes: processes(overview.connections),
  };
}

function state({ missing }: Overview, { dependencies }: OverviewDeps): Html {
  const items = dependencies.map(({ name }) =>
    missing.includes(name) ? badge('bad', `${name} not available`) : badge('good', `${name} ready`),
  );
  return html`<ul class="badges" aria-label="Readiness">${items.map((item) => html`<li>${item}</li>`)}</ul>`;
}

const LABELS: Readonly<Record<ThroughputKind, string>> = {
  trades: 'Trades',
  priceChanges: 'Price changes',
  events: 'Events',
  attempts: 'Delivery attempts',
};

function throughput(rates: Throughput): Html {
  return html`<div class="grid">${Object.entries(LABELS).map(([kind, label]) => {
    const values = rates[kind as ThroughputKind];
    const known = values.filter((value) => value !== null);
    const latest = values.at(-1) ?? known.at(-1);
    const highest = known.length === 0 ? null : Math.max(...known);
    const words = `${label} per minute over the last hour: ${
      latest === undefined ? 'no samples yet' : `${perMinute(latest)} now, peak ${perMinute(highest ?? 0)}`
    }`;
    return html`<div class="card"><h3>${label}</h3>
<span class="figure">${latest === undefined ? NONE : perMinute(latest)} <small>per minute</small></span>
${bars(values, words)}
<div class="axis" aria-hidden="true"><span>−${THROUGHPUT_MINUTES} min</span><span>${
      highest === null ? 'no samples yet' : `peak ${perMinute(highest)}`
    }</span><span>now</span></div></div>`;
  })}</div>`;
}

function perMinute(rate: number): string {
  return rate.toLocaleString('en-US', { maximumFractionDigits: rate < 10 ? 1 : 0 });
}

function ingest({ polls, feeds }: Overview, venues: readonly EnabledVenue[]): Html {
  if (venues.length === 0) return emptyState('No venue is enabled. Set VENUES to enable venues.');
  return html`<div class="grid small">${venues.map(({ venue, title, pollMs }) => {
    const scheduled = polls.filter((poll) => poll.venue === venue && isScheduledPoll(poll.kind, pollMs));
    const stalest = scheduled.reduce<PollAge | undefined>(
      (worst, poll) => (isStaler(poll, worst) ? poll : worst),
      undefined,
    );
    const unhealthy = scheduled.filter((poll) => !isHealthy(poll, pollMs));
    const lag = stalest?.sinceSuccessSeconds ?? null;
    const feed = feeds.states.get(venue);
    return html`<div class="card"><h3><a href="/ops/venues/${encodeURIComponent(venue)}">${title}</a></h3>
<span class="figure">${lag === null ? NONE : duration(lag * 1000)} <small>${
      stalest === undefined
        ? 'never polled'
        : lag === null
          ? `${stalest.kind}: no success yet`
          : `since the last success of ${stalest.kind}`
    }</small></span>
<p class="under">${
      scheduled.length === 0
        ? badge('idle', 'not polled yet')
        : unhealthy.length === 0
          ? badge('good', 'healthy')
          : html`${badge('bad', 'unhealthy')} <span class="muted">${unhealthy.map(({ kind }) => kind).join(', ')}</span>`
    }</p>${feed && feedLine(feed)}</div>`;
  })}</div>`;
}

function feedLine({ state, messagesPerSecond }: FeedReport): Html {
  const rate = state === 'live' && html` <span class="muted">${perMinute(messagesPerSecond)} messages/s</span>`;
  return html`<p class="under">Feed: ${feedBadge(state)}${rate}</p>`;
}

function isStaler(poll: PollAge, worst: PollAge | undefined): boolean {
  const age = (each: PollAge) => each.sinceSuccessSeconds ?? Number.POSITIVE_INFINITY;
  return worst === undefined || age(poll) > age(worst);
}

function isHealthy({ kind, failuresInARow, sinceSuccessSeconds }: PollAge, pollMs: EnabledVenue['pollMs']): boolean {
  const lastSuccessAt = sinceSuccessSeconds === null ? null : new Date(-sinceSuccessSeconds * 1000);
  return isPollHealthy({ kind, lastSuccessAt, idleAt: null, consecutiveFailures: failuresInARow }, pollMs, 0);
}

function deliveries({ due, inFlight, oldestOverdueMs }: DeliveryLoad): Html {
  const isLate = oldestOverdueMs !== null && oldestOverdueMs > OVERDUE_MS;
  return html`<div class="grid small">
<div class="card"><h3>Due or in flight</h3><span class="figure">${
    due > MAX_COUNTED_DUE ? html`${number(MAX_COUNTED_DUE)}+` : number(due)
  }</span><p class="under muted">attempts</p></div>
<div class="card"><h3>In flight</h3><span class="figure">${number(inFlight)}</span><p class="under muted">claimed by a deliverer</p></div>
<div class="card"><h3>Oldest overdue</h3><span class="figure">${
    oldestOverdueMs === null ? NONE : duration(oldestOverdueMs)
  }</span><p class="under">${
    oldestOverdueMs === null
      ? badge('good', 'no backlog')
      : isLate
        ? html`${badge('bad', 'late')} <span class="muted">Does a deliverer run?</span>`
        : badge('good', 'on time')
  }</p></div></div>`;
}

function failing(endpoints: readonly FailingEndpoint[], nowMs: number): Html {
  return table<FailingEndpoint>({
    caption: `Failing endpoints, at most ${MAX_FAILING}`,
    columns: [
      {
        label: 'Endpoint',
        cell: ({ id, url }) =>
          html`<a class="long" href="/ops/webhooks/${encodeURIComponent(id)}">${shownUrl(url)}</a>`,
      },
      { label: 'Account', cell: ({ account }) => longText(account) },
      { label: 'Failing since', cell: ({ failingSince }) => ago(failingSince, nowMs) },
      { label: 'Exhausted', cell: ({ exhausted }) => number(exhausted), isNumeric: true },
      { label: 'State', cell: ({ status }) => badge(status === 'paused' ? 'idle' : 'warn', status) },
      {
        label: 'Last error',
        cell: ({ lastError, lastStatusCode }) =>
          html`${lastStatusCode !== null && html`<span class="num">${lastStatusCode}</span> `}${longText(lastError)}`,
      },
    ],
    rows: endpoints,
    empty: 'No endpoint is failing.',
  });
}

const STAGE_NAME: Readonly<Record<string, string>> = {
  'fold-candles': 'Candles from trades',
  'sample-snapshots': 'Price snapshots',
  'evaluate-alerts': 'Alert evaluation',
};

function stages(backlogs: readonly StageBacklog[]): Html {
  return table<StageBacklog>({
    caption: 'Pending marks of each stage',
    columns: [
      { label: 'Stage', cell: ({ stage }) => html`${STAGE_NAME[stage] ?? stage} <code class="muted">${stage}</code>` },
      { label: 'Pending', cell: ({ waiting }) => number(waiting), isNumeric: true },
      {
        label: 'Oldest',
        cell: ({ oldestMs }) => (oldestMs === null ? NONE : oldestMs < 60_000 ? 'less than 1 min' : duration(oldestMs)),
      },
      { label: 'Dead-lettered', cell: ({ deadLetters }) => number(deadLetters), isNumeric: true },
      { label: 'State', cell: stageState },
    ],
    rows: backlogs,
    empty: 'No stage exists.',
  });
}

/** The unfinished passes over stored candles after an upgrade. */
function refolds(passes: readonly RefoldProgress[]): Html {
  const open = passes.filter(({ isFinished }) => !isFinished);
  return html`${open.map(
    (each) =>
      html`<p class="under">Refold of stored candles, pass ${each.pass} of ${passes.length}: ${Math.floor(
        refoldShare(each) * 100,
      )} % · ${number(each.minutes)} minutes marked</p>`,
  )}`;
}

function stageState({ stage, oldestMs, deadLetters }: StageBacklog): Html {
  // A snapshot is due only at the end of its minute.
  const limitMs = STALLED_MS + (stage === 'sample-snapshots' ? 60_000 : 0);
  if (oldestMs !== null && oldestMs > limitMs) return badge('bad', 'stalled');
  return deadLetters > 0 ? badge('warn', 'dead letters') : badge('good', 'on time');
}

function processes(connections: ReadonlyMap<string, number>): Html {
  return html`<ul class="badges" aria-label="Database connections of the processes">${PROCESSES.map((name) => {
    const count = connections.get(name);
    return html`<li>${
      count === undefined
        ? badge('warn', `${name}: no connection`)
        : badge('good', `${name}: ${count} ${count === 1 ? 'connection' : 'connections'}`)
    }</li>`;
  })}</ul><p class="hint">The database connections of each kind of process. An idle process may have few connections.</p>`;
}
