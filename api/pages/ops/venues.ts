import { briefly } from '../../../src/domain/values/caches.ts';
import {
  listQuarantine,
  type QuarantineCursor,
  type QuarantineEntry,
  type QuarantineSummary,
  summarizeQuarantine,
} from '../../../src/store/catalog/quarantine.ts';
import { latestGaps } from '../../../src/store/feeds/gaps.ts';
import { countMarketsByStatus, type MarketCount, type OpsPoll, readPolls } from '../../../src/store/ops/venues.ts';
import { readFreshness, type VenueFreshness } from '../../../src/store/prices/freshness.ts';
import { readVenueCompleteness, type VenueCompleteness } from '../../../src/store/series/completeness.ts';
import { type RereadProgress, readRereads } from '../../../src/store/series/trade-reread.ts';
import { ApiError } from '../../errors.ts';
import { comparingOf } from '../../reads/completeness.ts';
import { readVenueFeeds } from '../../reads/feed-states.ts';
import { isIdlePoll, isPollHealthy, isScheduledPoll } from '../../reads/poll-health.ts';
import type { EnabledVenue } from '../../reads/venue-catalog.ts';
import { ago, badge, code, duration, facts, type Html, html, longText, NONE, number, table } from '../kit/html.ts';
import { BY_AGE, pager } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { shareText } from '../kit/shown-values.ts';
import type { OpsRouter } from './actions.ts';
import { isTroubled, type OpsProblem } from './problems/facts.ts';
import { findProblems, headOf, type Problems, problemsAbout } from './problems/read.ts';
import { failureStory } from './problems/venues.ts';
import { feedTable, gapTable, SHOWN_GAPS } from './venue-feeds.ts';

const PATH = '/ops/venues';
/** The lifetime of the counts, which scan the whole catalog and quarantine. */
const COUNTS_FRESH_MS = 30_000;
const SAMPLES_PER_PAGE = 10;
/** The error of a venue client while its breaker is open (src/venues/http/http.ts). */
const BREAKER_OPEN = /circuit breaker is open/;

type VenueDeps = Pick<PageDeps, 'db' | 'venues' | 'cursors'> & { problems: Problems };

const WELL = 'Nothing is wrong: every venue is fresh, and its feed has data or polls in its place.';

/** /ops/venues: the state of the polls of each venue, and their rejected records. */
export function venuePages(router: OpsRouter, deps: VenueDeps): void {
  const names = deps.venues.map(({ venue }) => venue);
  const marketCounts = briefly(COUNTS_FRESH_MS, () => countMarketsByStatus(deps.db, names));
  const rejections = briefly(COUNTS_FRESH_MS, () => summarizeQuarantine(deps.db, {}));

  router.page({
    path: PATH,
    section: 'venues',
    async load({ nowMs }) {
      const [polls, counts, rejected, freshness, completeness, feeds, rereads] = await Promise.all([
        readPolls(deps.db, names),
        marketCounts(),
        rejections(),
        readFreshness(deps.db, names),
        readVenueCompleteness(deps.db, names),
        readVenueFeeds(deps),
        readRereads(deps.db, names),
      ]);
      const body = html`${await deps.problems.head(['venues'], nowMs, WELL)}
<p class="lead">Each venue has its own queue, and each kind of poll its own cadence.</p>
${ageTable(deps.venues, freshness, nowMs)}
<h2 id="feeds">Feeds</h2>
<p class="lead">A feed makes prices fresher. Polls continue beside it, and read the markets of its gaps.</p>
${feedTable(deps.venues, feeds, nowMs)}
${deps.venues.map((profile) => {
  const { venue } = profile;
  const times = rejected.filter((each) => each.venue === venue).reduce((sum, each) => sum + each.times, 0);
  return html`<section aria-labelledby="venue-${venue}">
<h2 id="venue-${venue}"><a href="${venuePath(venue)}">${profile.title}</a></h2>
<p class="under">${number(marketsOf(counts, venue))} markets · ${
    times === 0 ? 'no rejections' : html`<a href="${venuePath(venue)}#rejected">${number(times)} rejections</a>`
  } · ${completenessText(completeness.get(venue), profile.pollMs.trades, nowMs)}</p>${rereadText(rereads.get(venue), nowMs)}
${storyOf(profile, polls, nowMs)}${pollTable(profile, polls, nowMs)}</section>`;
})}${breakerNote()}`;
      return { title: 'Venues', body };
    },
  });

  router.page({
    path: `${PATH}/:venue`,
    section: 'venues',
    async load({ params, query, nowMs }) {
      const profile = deps.venues.find(({ venue }) => venue === params['venue']);
      if (!profile) throw new ApiError('venue_not_found', 'no enabled venue has this name');
      const { venue } = profile;
      const kind = query.get('kind') ?? undefined;
      const reason = query.get('reason') ?? undefined;
      const filter = { venue, ...(kind !== undefined && { kind }), ...(reason !== undefined && { reason }) };
      const scope = JSON.stringify([PATH, venue, kind, reason]);
      const cursor = query.get('cursor');
      const after = cursor === null ? undefined : toCursor(deps.cursors.decode(scope, cursor));
      const [overview, polls, completeness, counts, rejected, freshness, feeds, gaps, rereads, samples] =
        await Promise.all([
          deps.problems.read(),
          readPolls(deps.db, [venue]),
          readVenueCompleteness(deps.db, [venue]),
          marketCounts(),
          rejections(),
          readFreshness(deps.db, [venue]),
          readVenueFeeds(deps),
          latestGaps(deps.db, venue, SHOWN_GAPS),
          readRereads(deps.db, [venue]),
          listQuarantine(deps.db, filter, { limit: SAMPLES_PER_PAGE, ...(after && { after }) }),
        ]);
      const next = samples.next && deps.cursors.encode(scope, fromCursor(samples.next));
      const offers = Object.entries(profile.capabilities).flatMap(([name, isOffered]) => (isOffered ? [name] : []));
      const body = html`${headOf(
        problemsOfVenue(problemsAbout(findProblems({ ...overview.facts, nowMs }), ['venues']), venue),
        { nowMs, readAtMs: overview.readAtMs, well: `Nothing is wrong with the polls of ${profile.title}.` },
      )}
<p class="lead">Currency: ${profile.currency}. Capabilities: ${offers.join(', ')}.</p>
${storyOf(profile, polls, nowMs)}${pollTable(profile, polls, nowMs)}${breakerNote()}
${profile.capabilities.prices && ageTable([profile], freshness, nowMs)}
${profile.capabilities.markets && html`<h2 id="feed">Feed</h2>${feedTable([profile], feeds, nowMs)}<h2 id="gaps">Gaps of the feed</h2>${gapTable(gaps, nowMs)}`}
<h2 id="completeness">Completeness</h2>${completenessFacts(completeness.get(venue), profile.pollMs.trades, nowMs)}${rereadText(rereads.get(venue), nowMs)}
<h2>Markets</h2>${countTable(counts.filter((each) => each.venue === venue))}
<h2 id="rejected">Rejected records</h2>
<p class="lead">Invalid records, which the quarantine keeps for 30 days. oddswire stores the other records of the same page.</p>
${rejectionTable(
  rejected.filter((each) => each.venue === venue),
  nowMs,
)}
<h2>Newest samples${reason !== undefined && html` of <code>${reason}</code>`}</h2>
${reason !== undefined && html`<p><a href="${venuePath(venue)}#rejected">Show all reasons</a></p>`}
${sampleList(samples.entries, nowMs)}${pager({ path: venuePath(venue), query }, next, BY_AGE)}`;
      return { title: profile.title, body };
    },
  });
}

/** The problems of one venue. A cause stays when one of its effects is of the venue. */
function problemsOfVenue(problems: readonly OpsProblem[], venue: string): OpsProblem[] {
  const isOwn = ({ link }: Pick<OpsProblem, 'link'>) => link === venuePath(venue);
  return problems.flatMap((problem) => {
    const effects = problem.effects?.filter(isOwn) ?? [];
    if (effects.length > 0) return [{ ...problem, effects }];
    return isOwn(problem) ? [problem] : [];
  });
}

function venuePath(venue: string): string {
  return `${PATH}/${encodeURIComponent(venue)}`;
}

function ageTable(venues: readonly EnabledVenue[], measured: readonly VenueFreshness[], nowMs: number): Html {
  const titles = new Map<string, string>(venues.map(({ venue, title }) => [venue, title]));
  const age = (ms: bigint | null) => (ms === null ? NONE : html`<span class="num">${duration(Number(ms))}</span>`);
  return table<VenueFreshness>({
    caption: 'Price age over all open markets',
    columns: [
      { label: 'Venue', cell: ({ venue }) => titles.get(venue) ?? venue },
      { label: 'Price age, p50', cell: ({ p50Ms }) => age(p50Ms) },
      { label: 'p99', cell: ({ p99Ms }) => age(p99Ms) },
      { label: 'Maximum', cell: ({ maxMs }) => age(maxMs) },
      { label: 'Open markets', cell: ({ markets }) => number(markets), isNumeric: true },
      { label: 'Without a price', cell: ({ unpriced }) => number(unpriced), isNumeric: true },
      { label: 'Measured', cell: ({ measuredAt }) => ago(measuredAt, nowMs) },
    ],
    rows: measured,
    empty: 'No measurement yet. Does an aggregator run?',
  });
}

/** The first failure of the present trouble. */
function storyOf({ venue, pollMs }: EnabledVenue, polls: readonly OpsPoll[], nowMs: number): Html | undefined {
  const story = failureStory(
    polls.filter((poll) => poll.venue === venue && isTroubled(poll, pollMs, nowMs)),
    nowMs,
  );
  return story && html`<p class="under long">${story.text}</p>`;
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
      { label: 'Last attempt', cell: ({ lastAttemptAt }) => ago(lastAttemptAt, nowMs) },
      { label: 'Next attempt', cell: (poll) => nextPoll(poll, pollMs, nowMs) },
      { label: 'Failures in a row', cell: ({ consecutiveFailures }) => number(consecutiveFailures), isNumeric: true },
      { label: 'Last error', cell: ({ lastError }) => longText(lastError) },
    ],
    rows: all.filter((poll) => poll.venue === venue),
    empty: 'No poll yet. Does a poller run?',
  });
}

function pollState(poll: OpsPoll, pollMs: EnabledVenue['pollMs'], nowMs: number): Html {
  if (poll.lastError !== null && BREAKER_OPEN.test(poll.lastError)) return badge('bad', 'breaker open');
  if (!isScheduledPoll(poll.kind, pollMs)) {
    if (poll.lastError === null) return badge('idle', 'on demand');
    return badge('warn', poll.consecutiveFailures > 0 ? 'failed' : 'late');
  }
  if (isPollHealthy(poll, pollMs, nowMs)) {
    if (poll.consecutiveFailures > 0) return badge('warn', 'last attempt failed');
    if (poll.lastError !== null) return badge('warn', 'last attempt late');
    return isIdlePoll(poll) ? badge('idle', 'nothing to request') : badge('good', 'healthy');
  }
  return poll.consecutiveFailures > 0
    ? badge('bad', 'failing')
    : badge('bad', poll.lastSuccessAt ? 'late' : 'no success yet');
}

/** The next turn of the scheduler, estimated from the last attempt. */
function nextPoll({ kind, lastAttemptAt, isInFlight }: OpsPoll, pollMs: EnabledVenue['pollMs'], nowMs: number): Html {
  if (isInFlight) return html`in flight`;
  if (lastAttemptAt === null || !isScheduledPoll(kind, pollMs)) return NONE;
  const at = new Date(lastAttemptAt.getTime() + pollMs[kind]);
  return at.getTime() <= nowMs ? html`due` : ago(at, nowMs);
}

function breakerNote(): Html {
  return html`<p class="hint">The poller keeps one circuit breaker per host in memory. The table shows the polls that an open breaker blocks. The metric <code>venue_breaker_state</code> has the state.</p>`;
}

function marketsOf(counts: readonly MarketCount[], venue: string): number {
  return counts.filter((each) => each.venue === venue).reduce((sum, each) => sum + each.markets, 0);
}

/** The covered share of the venue's volume, in one line. */
function completenessText(
  completeness: VenueCompleteness | undefined,
  pollMs: number | undefined,
  nowMs: number,
): Html {
  if (completeness === undefined) return html`trades not compared yet`;
  const { marketsMissing } = completeness;
  const { share, isComparing } = comparingOf(completeness, nowMs, pollMs);
  const stored = share === null ? html`no compared volume yet` : html`${shareText(share)} of the volume stored`;
  return html`${
    marketsMissing === 0
      ? stored
      : html`${badge('bad', 'missing trades')} ${stored}, trades of ${number(marketsMissing)} markets missing`
  }${!isComparing && html` ${badge('warn', 'not compared now')} ${tapeState(completeness, nowMs)}`}`;
}

/** How far the trades were read, while new volumes wait for it. */
function tapeState({ caughtUpMs }: VenueCompleteness, nowMs: number): Html {
  return caughtUpMs === null
    ? html`trades were not read without a gap yet`
    : html`trades read up to ${ago(new Date(caughtUpMs), nowMs)}`;
}

function completenessFacts(
  completeness: VenueCompleteness | undefined,
  pollMs: number | undefined,
  nowMs: number,
): Html {
  if (completeness === undefined)
    return html`<p class="empty">No total of this venue was compared with the stored trades yet.</p>`;
  const { since, markets, marketsMissing, missingSince, caughtUpMs } = completeness;
  const { share, checkedAt, isComparing } = comparingOf(completeness, nowMs, pollMs);
  return facts([
    ['Stored share of the volume', share === null ? html`no compared market has traded` : shareText(share)],
    ['Since', since === null ? NONE : ago(since, nowMs)],
    [
      'Comparison',
      isComparing
        ? markets === 0
          ? badge('idle', 'nothing compared yet')
          : badge('good', 'up to date')
        : html`${badge('warn', 'not compared now')} the polls of trades fail or lag`,
    ],
    ['Trades read up to', caughtUpMs === null ? NONE : ago(new Date(caughtUpMs), nowMs)],
    ['Last comparison', ago(checkedAt, nowMs)],
    ['Compared markets', number(markets)],
    ['Markets with missing trades', number(marketsMissing)],
    ['Missing since', missingSince === null ? NONE : ago(missingSince, nowMs)],
  ]);
}

/** The second reading of stored trades whose prices were computed in binary floats; empty for a venue without it. */
function rereadText(reread: RereadProgress | undefined, nowMs: number): Html {
  if (reread === undefined) return html``;
  const { isEnded, endedAt, dueAt, markets, trades, kept } = reread;
  const state = isEnded
    ? html`ended ${ago(endedAt, nowMs)}`
    : dueAt !== null && dueAt.getTime() > nowMs
      ? html`continues ${ago(dueAt, nowMs)}`
      : html`in progress`;
  return html`<p class="under">Stored prices read again (${state}): ${number(trades)} corrected in ${number(markets)} markets · ${number(kept)} trades that the venue no longer serves keep their rounded price</p>`;
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
    empty: 'No market of this venue is stored.',
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
      { label: 'Occurrences', cell: ({ times }) => number(times), isNumeric: true },
      { label: 'First seen', cell: ({ firstSeenMs }) => ago(new Date(firstSeenMs), nowMs) },
      { label: 'Last seen', cell: ({ lastSeenMs }) => ago(new Date(lastSeenMs), nowMs) },
    ],
    rows: rejected,
    empty: 'No record of this venue was rejected.',
  });
}

function sampleList(entries: readonly QuarantineEntry[], nowMs: number): Html {
  if (entries.length === 0) return html`<p class="empty">No sample is stored.</p>`;
  return html`${entries.map(
    (
      entry,
    ) => html`<article class="card sample"><h3>${entry.recordId === '' ? 'Record without a readable id' : code(entry.recordId)}</h3>
<p class="under"><code>${entry.reason}</code> · ${entry.kind} · ${number(entry.times)} occurrences · ${ago(new Date(entry.lastSeenMs), nowMs)}</p>
<p>${longText(entry.detail)}</p><details><summary>Record</summary><pre tabindex="0">${entry.sample}</pre></details></article>`,
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
