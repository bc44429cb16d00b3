import {
  listQuarantine,
  type QuarantineCursor,
  type QuarantineEntry,
  type QuarantineSummary,
  summarizeQuarantine,
} from '../../../src/store/catalog/quarantine-reads.ts';
import { countMarketsByStatus, type MarketCount, type OpsPoll, readPolls } from '../../../src/store/ops/venues.ts';
import type { ApiDeps } from '../../deps.ts';
import { ApiError } from '../../errors.ts';
import { isPollHealthy, isScheduledPoll } from '../../reads/poll-health.ts';
import type { EnabledVenue } from '../../reads/venue-catalog.ts';
import { briefly } from '../brief-cache.ts';
import { ago, badge, code, duration, type Html, html, longText, NONE, number, pager, table } from '../html.ts';
import type { OpsRouter } from '../ops-route.ts';

const PATH = '/ops/venues';
/** Counts of the whole catalog, and of everything that was rejected. */
const COUNTS_FRESH_MS = 30_000;
const SAMPLES_PER_PAGE = 10;
/** How the client of a venue words it when its breaker lets nothing through (src/venues/http.ts). */
const BREAKER_OPEN = /circuit breaker is open/;

type VenueDeps = Pick<ApiDeps, 'db' | 'venues' | 'cursors'>;

/** The state of each venue's polls, and their rejected records. */
export function venuePages(router: OpsRouter, deps: VenueDeps): void {
  const names = deps.venues.map(({ venue }) => venue);
  const marketCounts = briefly(COUNTS_FRESH_MS, () => countMarketsByStatus(deps.db, names));
  const rejections = briefly(COUNTS_FRESH_MS, () => summarizeQuarantine(deps.db, {}));

  router.page({
    path: PATH,
    section: 'venues',
    async load({ nowMs }) {
      const [polls, counts, rejected] = await Promise.all([readPolls(deps.db, names), marketCounts(), rejections()]);
      const body = html`<p class="lead">Each venue is polled on its own queue, each kind at its own pace.</p>
${deps.venues.map((profile) => {
  const { venue } = profile;
  const times = rejected.filter((each) => each.venue === venue).reduce((sum, each) => sum + each.times, 0);
  return html`<section aria-labelledby="venue-${venue}">
<h2 id="venue-${venue}"><a href="${venuePath(venue)}">${profile.title}</a></h2>
<p class="under">${number(marketsOf(counts, venue))} markets · ${
    times === 0 ? 'nothing rejected' : html`<a href="${venuePath(venue)}#rejected">${number(times)} rejections</a>`
  }</p>
${pollTable(profile, polls, nowMs)}</section>`;
})}${breakerNote()}`;
      return { title: 'Venues', body };
    },
  });

  router.page({
    path: `${PATH}/:venue`,
    section: 'venues',
    async load({ params, query, nowMs }) {
      const profile = deps.venues.find(({ venue }) => venue === params['venue']);
      if (!profile) throw new ApiError('venue_not_found', 'no venue of this name is enabled');
      const { venue } = profile;
      const kind = query.get('kind') ?? undefined;
      const reason = query.get('reason') ?? undefined;
      const filter = { venue, ...(kind !== undefined && { kind }), ...(reason !== undefined && { reason }) };
      const scope = JSON.stringify([PATH, venue, kind, reason]);
      const cursor = query.get('cursor');
      const after = cursor === null ? undefined : toCursor(deps.cursors.decode(scope, cursor));
      const [polls, counts, rejected, samples] = await Promise.all([
        readPolls(deps.db, [venue]),
        marketCounts(),
        rejections(),
        listQuarantine(deps.db, filter, { limit: SAMPLES_PER_PAGE, ...(after && { after }) }),
      ]);
      const next = samples.next && deps.cursors.encode(scope, fromCursor(samples.next));
      const offers = Object.entries(profile.capabilities).flatMap(([name, isOffered]) => (isOffered ? [name] : []));
      const body = html`<p class="lead">Prices in ${profile.currency}. Offers ${offers.join(', ')}.</p>
${pollTable(profile, polls, nowMs)}${breakerNote()}
<h2>Markets</h2>${countTable(counts.filter((each) => each.venue === venue))}
<h2 id="rejected">Rejected records</h2>
<p class="lead">Records that did not pass the door. They are not stored; their neighbours are. Kept for 30 days.</p>
${rejectionTable(
  rejected.filter((each) => each.venue === venue),
  nowMs,
)}
<h2>Newest samples${reason !== undefined && html` of <code>${reason}</code>`}</h2>
${reason !== undefined && html`<p><a href="${venuePath(venue)}#rejected">Show every reason</a></p>`}
${sampleList(samples.entries, nowMs)}${pager(venuePath(venue), query, next)}`;
      return { title: profile.title, body };
    },
  });
}

function venuePath(venue: string): string {
  return `${PATH}/${encodeURIComponent(venue)}`;
}

function pollTable(profile: EnabledVenue, all: readonly OpsPoll[], nowMs: number): Html {
  const { venue, pollMs, title } = profile;
  return table<OpsPoll>({
    caption: `Polls of ${title}`,
    columns: [
      { label: 'Kind', cell: ({ kind }) => kind },
      { label: 'State', cell: (poll) => pollState(poll, pollMs, nowMs) },
      {
        label: 'Cadence',
        cell: ({ kind }) =>
          isScheduledPoll(kind, pollMs) ? html`<span class="num">${duration(pollMs[kind])}</span>` : 'on demand',
      },
      { label: 'Last success', cell: ({ lastSuccessAt }) => ago(lastSuccessAt, nowMs) },
      { label: 'Last try', cell: ({ lastAttemptAt }) => ago(lastAttemptAt, nowMs) },
      { label: 'Next try', cell: (poll) => nextTry(poll, pollMs, nowMs) },
      { label: 'Failures in a row', cell: ({ consecutiveFailures }) => number(consecutiveFailures), isNumeric: true },
      { label: 'Last reason', cell: ({ lastError }) => longText(lastError) },
    ],
    rows: all.filter((poll) => poll.venue === venue),
    empty: 'Never polled yet. Is a poller running?',
  });
}

function pollState(poll: OpsPoll, pollMs: EnabledVenue['pollMs'], nowMs: number): Html {
  if (poll.lastError !== null && BREAKER_OPEN.test(poll.lastError)) return badge('bad', 'breaker open');
  if (!isScheduledPoll(poll.kind, pollMs)) {
    return poll.lastError === null ? badge('idle', 'on demand') : badge('warn', 'failed');
  }
  if (isPollHealthy(poll, pollMs, nowMs)) {
    return poll.consecutiveFailures > 0 ? badge('warn', 'last try failed') : badge('good', 'healthy');
  }
  return poll.consecutiveFailures > 0
    ? badge('bad', 'failing')
    : badge('bad', poll.lastSuccessAt ? 'late' : 'no success yet');
}

/** Its scheduler's next turn, as far as the last try tells. */
function nextTry({ kind, lastAttemptAt, isUnderWay }: OpsPoll, pollMs: EnabledVenue['pollMs'], nowMs: number): Html {
  if (isUnderWay) return html`under way`;
  if (lastAttemptAt === null || !isScheduledPoll(kind, pollMs)) return NONE;
  const at = new Date(lastAttemptAt.getTime() + pollMs[kind]);
  return at.getTime() <= nowMs ? html`due` : ago(at, nowMs);
}

function breakerNote(): Html {
  return html`<p class="hint">Circuit breakers live in the poller's memory, one per host: a poll they refuse says so here. Their state is the metric <code>venue_breaker_state</code>.</p>`;
}

function marketsOf(counts: readonly MarketCount[], venue: string): number {
  return counts.filter((each) => each.venue === venue).reduce((sum, each) => sum + each.markets, 0);
}

const LIFECYCLE = ['created', 'open', 'halted', 'closed', 'resolved', 'settled'];

function countTable(counts: readonly MarketCount[]): Html {
  return table<MarketCount>({
    caption: 'Markets by state',
    columns: [
      { label: 'State', cell: ({ status }) => status },
      { label: 'Markets', cell: ({ markets }) => number(markets), isNumeric: true },
    ],
    rows: [...counts].sort((a, b) => LIFECYCLE.indexOf(a.status) - LIFECYCLE.indexOf(b.status)),
    empty: 'No market is stored of this venue.',
  });
}

function rejectionTable(rejected: readonly QuarantineSummary[], nowMs: number): Html {
  return table<QuarantineSummary>({
    caption: 'Rejected records by kind and reason',
    columns: [
      {
        label: 'Reason',
        cell: ({ venue, kind, reason }) => {
          const query = new URLSearchParams({ kind, reason });
          return html`<a href="${venuePath(venue)}?${query.toString()}#rejected"><code>${reason}</code></a>`;
        },
      },
      { label: 'Kind', cell: ({ kind }) => kind },
      { label: 'Records', cell: ({ records }) => number(records), isNumeric: true },
      { label: 'Times', cell: ({ times }) => number(times), isNumeric: true },
      { label: 'First seen', cell: ({ firstSeenMs }) => ago(new Date(firstSeenMs), nowMs) },
      { label: 'Last seen', cell: ({ lastSeenMs }) => ago(new Date(lastSeenMs), nowMs) },
    ],
    rows: rejected,
    empty: 'Nothing of this venue was rejected.',
  });
}

function sampleList(entries: readonly QuarantineEntry[], nowMs: number): Html {
  if (entries.length === 0) return html`<p class="empty">No sample.</p>`;
  return html`${entries.map(
    (
      entry,
    ) => html`<article class="card sample"><h3>${entry.recordId === '' ? 'a record without a readable id' : code(entry.recordId)}</h3>
<p class="under"><code>${entry.reason}</code> · ${entry.kind} · ${number(entry.times)} times · ${ago(new Date(entry.lastSeenMs), nowMs)}</p>
<p>${longText(entry.detail)}</p><details><summary>The record</summary><pre tabindex="0">${entry.sample}</pre></details></article>`,
  )}`;
}

function fromCursor({ lastSeenMicros, venue, kind, reason, recordId }: QuarantineCursor): string[] {
  return [lastSeenMicros, venue, kind, reason, recordId];
}

function toCursor([
  lastSeenMicros = '',
  venue = '',
  kind = '',
  reason = '',
  recordId = '',
]: readonly string[]): QuarantineCursor {
  return { lastSeenMicros, venue, kind, reason, recordId };
}
