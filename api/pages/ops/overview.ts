import { briefly } from '../../../src/domain/values/briefly.ts';
import { type Dependency, readiness } from '../../../src/observe/probe-server.ts';
import { countUndecided } from '../../../src/store/catalog/undecided-markets.ts';
import { oldestOpenGaps } from '../../../src/store/feeds/gap-lists.ts';
import { readJournalHead } from '../../../src/store/journal/read-journal.ts';
import { listHeartbeats } from '../../../src/store/ops/heartbeats.ts';
import {
  countFailingEndpoints,
  listFailingEndpoints,
  readBacklogSamples,
  readDeliveryLoad,
  readStageBacklogs,
  readThroughput,
  type Throughput,
} from '../../../src/store/ops/overview.ts';
import { readPolls } from '../../../src/store/ops/venues.ts';
import { listPartlyFailing } from '../../../src/store/ops/webhook-troubles.ts';
import { type RefoldProgress, refoldProgress } from '../../../src/store/series/candle-refold.ts';
import { readVenueFeeds } from '../../reads/feed-states.ts';
import { html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { OpsRouter } from './actions.ts';
import { type ArchiveFacts, type ArchivePlan, archiveSection, readArchiveFacts } from './overview-archive.ts';
import {
  deliveryCards,
  failingTable,
  processTable,
  refoldProgressLines,
  stageTable,
  stateSentence,
  throughputCharts,
  type UndecidedFacts,
  venueCards,
} from './overview-parts.ts';
import { findProblems, type ProblemFacts } from './overview-problems.ts';

const PATH = '/ops';
const FRAGMENTS_PATH = '/ops/overview.json';
/** Bounds the queries, independent of the number of open pages. */
const FRESH_MS = 2_000;
/** Due days are counted from the whole catalog. */
const ARCHIVE_FRESH_MS = 15_000;
const MAX_FAILING = 10;
/** The period in which webhooks fail in part. */
const PARTLY_MS = 3_600_000;

/** `dependencies`: the checks of `/health/ready`. */
export type OverviewDeps = Pick<PageDeps, 'db' | 'venues' | 'now'> & {
  dependencies: readonly Dependency[];
  /** Absent: the archive is off. */
  archivePlan?: ArchivePlan | undefined;
};

interface Overview {
  facts: Omit<ProblemFacts, 'nowMs'> & UndecidedFacts;
  throughput: Throughput;
  refolds: readonly RefoldProgress[];
}

/** /ops: the current state of the service. A script refreshes it. */
export function overviewPages(router: OpsRouter, deps: OverviewDeps): void {
  const archive = briefly(ARCHIVE_FRESH_MS, () => readArchiveFacts(deps.db, deps.archivePlan));
  const read = briefly(FRESH_MS, () => readOverview(deps, archive));

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

async function readOverview(
  { db, dependencies, venues, now }: OverviewDeps,
  readArchive: () => Promise<ArchiveFacts | null>,
): Promise<Overview> {
  const names = venues.map(({ venue }) => venue);
  const { missing } = await readiness(dependencies);
  const [
    processes,
    stages,
    journal,
    load,
    backlog,
    polls,
    feeds,
    gapsSince,
    failing,
    failingTotal,
    partly,
    throughput,
    refolds,
    waiting,
    archive,
  ] = await Promise.all([
    listHeartbeats(db),
    readStageBacklogs(db),
    readJournalHead(db),
    readDeliveryLoad(db),
    readBacklogSamples(db),
    readPolls(db, names),
    readVenueFeeds({ db, venues }),
    oldestOpenGaps(db),
    listFailingEndpoints(db, MAX_FAILING),
    countFailingEndpoints(db),
    listPartlyFailing(db, now() - PARTLY_MS, MAX_FAILING),
    readThroughput(db),
    refoldProgress(db),
    countUndecided(db, names),
    readArchive(),
  ]);
  const webhooks = { failing, failingTotal, partlyFailing: partly.webhooks, partlyFailingTotal: partly.total };
  const facts = {
    missing,
    processes,
    stages,
    journal,
    load,
    backlog,
    venues,
    polls,
    feeds: feeds.states,
    gapsSince,
    archive,
    undecided: new Map(waiting.map((each) => [each.venue, each])),
    ...webhooks,
  };
  return { facts, throughput, refolds };
}

function fragments({ facts, throughput, refolds }: Overview, nowMs: number) {
  return {
    state: stateSentence(findProblems({ ...facts, nowMs }), nowMs),
    throughput: throughputCharts(throughput),
    ingest: venueCards(facts, nowMs),
    deliveries: deliveryCards(facts.load),
    failing: failingTable(facts.failing, nowMs),
    stages: html`${stageTable(facts.stages)}${refoldProgressLines(refolds)}`,
    ...(facts.archive && { archive: archiveSection(facts.archive, nowMs) }),
    processes: processTable(facts.processes, nowMs),
  };
}
