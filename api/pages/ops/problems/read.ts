import { briefly } from '../../../../src/domain/values/caches.ts';
import { type Dependency, readiness } from '../../../../src/observe/probe-server.ts';
import { countUndecided, type UndecidedMarkets } from '../../../../src/store/catalog/undecided-markets.ts';
import { oldestOpenGaps } from '../../../../src/store/feeds/gaps.ts';
import { readJournalHead } from '../../../../src/store/journal/read-journal.ts';
import { readExpiringKeys, readUnfinishedActions } from '../../../../src/store/ops/actions.ts';
import { listHeartbeats } from '../../../../src/store/ops/heartbeats.ts';
import {
  countFailingEndpoints,
  listFailingEndpoints,
  readBacklogSamples,
  readDeliveryLoad,
  readStageBacklogs,
  readThroughput,
  type Throughput,
} from '../../../../src/store/ops/overview.ts';
import { readPolls } from '../../../../src/store/ops/venues.ts';
import { listPartlyFailing } from '../../../../src/store/ops/webhooks.ts';
import { type RefoldProgress, refoldProgress } from '../../../../src/store/series/candle-refold.ts';
import { readVenueFeeds } from '../../../reads/feed-states.ts';
import type { Html } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { problemsOf } from '../../kit/problems.ts';
import { type ArchiveFacts, type ArchivePlan, readArchiveFacts } from '../overview-archive.ts';
import type { Area, OpsProblem, ProblemFacts } from './facts.ts';
import { hostProblems } from './host.ts';
import { expiringKeys, failingArchive, missingDependencies, silentProcesses, unfinishedActions } from './others.ts';
import { failingVenues, troubledFeeds } from './venues.ts';
import { failingWebhooks, partlyFailingWebhooks } from './webhooks.ts';
import { deadLetters, growingBacklogs, lateDeliveries, latePublisher, lateStages, unknownStages } from './work.ts';

/** Bounds the queries, independent of the number of open pages. */
const FRESH_MS = 2_000;
/** Due days are counted from the whole catalog, and keys and actions from their tables. */
const SLOW_FRESH_MS = 15_000;
const MAX_FAILING = 10;
/** The period in which webhooks fail in part. */
export const PARTLY_MS = 3_600_000;

/** `dependencies`: the checks of `/health/ready`. */
export type OverviewDeps = Pick<PageDeps, 'db' | 'venues' | 'now'> & {
  dependencies: readonly Dependency[];
  /** Absent: the archive is off. */
  archivePlan?: ArchivePlan | undefined;
};

/** The state of the service at a moment. */
export interface Overview {
  /** Epoch milliseconds, before the first fact was read. */
  readAtMs: number;
  facts: Omit<ProblemFacts, 'nowMs'> & UndecidedFacts;
  throughput: Throughput;
  refolds: readonly RefoldProgress[];
}

/** The problems of the service for all pages of the operators, which share its reads. */
export interface Problems {
  read(): Promise<Overview>;
  /** The head of a page about these subjects. */
  head(areas: readonly Area[], nowMs: number, well: string): Promise<Html>;
}

export function createProblems(deps: OverviewDeps): Problems {
  const archive = briefly(SLOW_FRESH_MS, () => readArchiveFacts(deps.db, deps.archivePlan));
  const slow = briefly(SLOW_FRESH_MS, async () => {
    const [expiringKeys, unfinished] = await Promise.all([readExpiringKeys(deps.db), readUnfinishedActions(deps.db)]);
    return { expiringKeys, unfinished };
  });
  const read = briefly(FRESH_MS, () => readOverview(deps, archive, slow));
  return {
    read,
    async head(areas, nowMs, well) {
      const { facts, readAtMs } = await read();
      const problems = problemsAbout(findProblems({ ...facts, nowMs }), areas);
      return headOf(problems, { nowMs, readAtMs, well });
    },
  };
}

export function headOf(
  problems: readonly OpsProblem[],
  { nowMs, readAtMs, well }: { nowMs: number; readAtMs: number; well: string },
): Html {
  return problemsOf(problems, { nowMs, checkedAt: new Date(readAtMs), well });
}

async function readOverview(
  { db, dependencies, venues, now }: OverviewDeps,
  readArchive: () => Promise<ArchiveFacts | null>,
  readSlow: () => Promise<Pick<ProblemFacts, 'expiringKeys' | 'unfinished'>>,
): Promise<Overview> {
  const readAtMs = now();
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
    slow,
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
    readSlow(),
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
    ...slow,
    undecided: new Map(waiting.map((each) => [each.venue, each])),
    ...webhooks,
  };
  return { readAtMs, facts, throughput, refolds };
}

/**
 * The kinds of problems, in the order of the page. A kind is a function of the facts: a new kind is one more entry.
 */
const KINDS: readonly ((facts: ProblemFacts) => readonly OpsProblem[])[] = [
  missingDependencies,
  silentProcesses,
  lateStages,
  unknownStages,
  latePublisher,
  lateDeliveries,
  growingBacklogs,
  failingVenues,
  troubledFeeds,
  failingWebhooks,
  partlyFailingWebhooks,
  deadLetters,
  failingArchive,
  expiringKeys,
  unfinishedActions,
];

/** All problems, the machine first where it is the cause of others, and the most severe kinds before the others. */
export function findProblems(facts: ProblemFacts): OpsProblem[] {
  const found = KINDS.flatMap((kind) => kind(facts));
  const ofHosts = hostProblems(
    facts,
    found.some(({ isLate }) => isLate),
  );
  const [cause] = ofHosts.filter(({ isCause }) => isCause);
  const isEffect = ({ isLate, host }: OpsProblem) => isLate && (host === undefined || host === cause?.host);
  const effects = cause === undefined ? [] : found.filter(isEffect);
  const rest = [...ofHosts.filter((each) => each !== cause), ...found.filter((each) => !effects.includes(each))];
  return [
    ...(cause === undefined ? [] : [effects.length === 0 ? cause : { ...cause, effects }]),
    ...rest.filter(({ tone }) => tone !== 'warn'),
    ...rest.filter(({ tone }) => tone === 'warn'),
  ];
}

/** The problems of the subjects of a page. A cause stays when one of its effects is among them. */
export function problemsAbout(problems: readonly OpsProblem[], areas: readonly Area[]): OpsProblem[] {
  const isAbout = ({ area }: OpsProblem) => areas.includes(area);
  return problems.flatMap((problem) => {
    const effects = (problem.effects as readonly OpsProblem[] | undefined)?.filter(isAbout) ?? [];
    if (effects.length > 0) return [{ ...problem, effects }];
    if (!isAbout(problem)) return [];
    const { effects: _, ...own } = problem;
    return [own];
  });
}

/** The markets of each venue that wait for their result. */
export interface UndecidedFacts {
  undecided: ReadonlyMap<string, UndecidedMarkets>;
}
