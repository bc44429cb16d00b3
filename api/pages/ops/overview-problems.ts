import type { FeedState } from '../../../src/store/feeds/streamers.ts';
import type { JournalHead } from '../../../src/store/journal/read-journal.ts';
import type { ProcessHeartbeat } from '../../../src/store/ops/heartbeats.ts';
import {
  type BacklogSample,
  type DeliveryLoad,
  type FailingEndpoint,
  MAX_COUNTED_BACKLOG,
  MAX_COUNTED_DUE,
  type StageBacklog,
} from '../../../src/store/ops/overview.ts';
import type { OpsPoll } from '../../../src/store/ops/venues.ts';
import type { PartlyFailingWebhook } from '../../../src/store/ops/webhook-troubles.ts';
import { isIdlePoll, isPollHealthy, isScheduledPoll } from '../../reads/poll-health.ts';
import type { EnabledVenue } from '../../reads/venue-catalog.ts';
import { duration, type HtmlValue, html, type Tone } from '../kit/html.ts';
import { endpointName } from '../kit/shown-values.ts';
import { type ArchiveFacts, failureSubject } from './overview-archive.ts';

/** Something that an operator should look at. */
export interface Problem {
  /** Null when the time is unknown. */
  since: Date | null;
  sentence: HtmlValue;
  /** The page about it: a path. */
  link: string;
  /** A problem that others may be an effect of. It stands before them. */
  isCause?: true;
  /** `bad` by default; `warn` when the service works on without loss. */
  tone?: Extract<Tone, 'bad' | 'warn'>;
}

/** The facts from which problems are found, all of one moment. */
export interface ProblemFacts {
  nowMs: number;
  /** Dependencies that do not answer. */
  missing: readonly string[];
  processes: readonly ProcessHeartbeat[];
  stages: readonly StageBacklog[];
  journal: Pick<JournalHead, 'checkedAt' | 'readAt'>;
  load: DeliveryLoad;
  backlog: readonly BacklogSample[];
  venues: readonly EnabledVenue[];
  polls: readonly OpsPoll[];
  /** By venue. */
  feeds: ReadonlyMap<string, FeedState>;
  /** The begin of the oldest open gap of a feed, by venue. */
  gapsSince: ReadonlyMap<string, Date>;
  failing: readonly FailingEndpoint[];
  /** The number of active failing webhooks, of which `failing` has the first ones. */
  failingTotal: number;
  partlyFailing: readonly PartlyFailingWebhook[];
  partlyFailingTotal: number;
  /** Null: the archive is off. */
  archive: ArchiveFacts | null;
}

export const PROCESSES = ['api', 'poller', 'streamer', 'aggregator', 'alerter', 'deliverer'] as const;
/** Without a streamer, prices come from polls. */
export const OPTIONAL_PROCESS: (typeof PROCESSES)[number] = 'streamer';
export const STAGE_NAME: Readonly<Record<string, string>> = {
  'fold-candles': 'Candles from trades',
  'sample-snapshots': 'Price snapshots',
  'evaluate-alerts': 'Alert evaluation',
};

/** A process sends a heartbeat every three seconds. */
const SILENT_MS = 5_000;
/** A process that is late for this part of ten seconds has no processor time for its work. */
const OVERLOADED_SHARE = 0.25;
/** A silent process counts this long as missing while another one of its kind works: it may have been removed on purpose. */
const MISSED_MS = 3_600_000;
/** A mark usually waits about a second. An older mark means a stalled stage. */
const STALLED_MS = 120_000;
/** The head is at most two seconds old when a change waits at the moment of the read. */
const UNCONFIRMED_MS = 5_000;
/** An attempt that is overdue for longer means that too few deliverers run. */
export const OVERDUE_MS = 60_000;
/** A feed connects again within seconds. */
const CONNECTING_MS = 60_000;
/** A single failure is repaired by the first attempts of the schedule. */
const FAILING_MS = 60_000;
/** A day is due some hours after its end, and its file takes minutes. A new archive has all former days to make. */
const ARCHIVE_LATE_MS = 4 * 86_400_000;
/** Webhooks of one kind of failure that the overview names; the list of webhooks has all. */
const MAX_NAMED = 3;
/** The growth of a backlog is compared over so many samples, one per minute. */
const GROWTH_SAMPLES = 5;
/** A smaller backlog is the work of some seconds. */
const GROWTH_AT_LEAST = 2_000;

/**
 * The kinds of problems, in the order of the page. A kind is a function of the facts: a new kind is one more entry.
 */
const KINDS: readonly ((facts: ProblemFacts) => readonly Problem[])[] = [
  overload,
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
];

/** All problems, the most severe kinds first. */
export function findProblems(facts: ProblemFacts): Problem[] {
  const found = KINDS.flatMap((kind) => kind(facts));
  return [...found.filter(({ tone }) => tone !== 'warn'), ...found.filter(({ tone }) => tone === 'warn')];
}

function missingDependencies({ missing }: ProblemFacts): Problem[] {
  return missing.map((name) => ({ since: null, sentence: `The ${name} does not answer.`, link: '/ops' }));
}

/** Whether a running process gets too little processor time. */
export function isOverloaded(row: ProcessHeartbeat): boolean {
  return !isSilent(row) && (row.lateShare ?? 0) >= OVERLOADED_SHARE;
}

/** One late process may have too much work. Several on one machine show that the machine has too little. */
function overload({ processes }: ProblemFacts): Problem[] {
  const late = processes.filter(isOverloaded);
  const hosts = [...new Set(late.map(({ host }) => host))];
  return hosts.map((host): Problem => {
    const rows = late.filter((row) => row.host === host).toSorted((a, b) => (b.lateShare ?? 0) - (a.lateShare ?? 0));
    const named = rows.map(({ process, lateShare }) => `${process} ${percentOf(lateShare)}`).join(', ');
    const [first] = rows;
    const sentence =
      rows.length > 1
        ? html`The machine <code>${host}</code> is overloaded. Its processes ran late in these parts of the last 10 s: ${named}.`
        : html`The ${first?.process} is overloaded: process ${first?.pid} on <code>${host}</code> ran late in ${percentOf(first?.lateShare)} of the last 10 s.`;
    return { since: null, sentence, link: '/ops#processes', isCause: true };
  });
}

export function percentOf(share: number | null | undefined): string {
  return `${Math.round(100 * (share ?? 0))} %`;
}

/** Whether a process sends no heartbeat. */
export function isSilent({ silentMs }: ProcessHeartbeat): boolean {
  return silentMs > SILENT_MS;
}

function silentProcesses({ processes }: ProblemFacts): Problem[] {
  return PROCESSES.flatMap((kind): Problem[] => {
    const rows = processes.filter(({ process }) => process === kind);
    const silent = rows.filter((row) => isSilent(row) && !row.isReplaced);
    const link = '/ops#processes';
    if (rows.some((row) => !isSilent(row))) {
      return silent
        .filter(({ silentMs }) => silentMs < MISSED_MS)
        .map(({ seenAt, host, pid }) => ({
          since: seenAt,
          sentence: html`One ${kind} of several stopped: process ${pid} on <code>${host}</code> sends no heartbeat.`,
          link,
        }));
    }
    const last = silent.toSorted((a, b) => a.silentMs - b.silentMs)[0];
    if (last === undefined && kind === OPTIONAL_PROCESS) return [];
    if (last === undefined) return [{ since: null, sentence: `No ${kind} runs: no heartbeat is known.`, link }];
    const { seenAt, host, pid } = last;
    const sentence = html`The ${kind} stopped: process ${pid} on <code>${host}</code> sends no heartbeat.`;
    return [{ since: seenAt, sentence, link }];
  });
}

/** Whether marks of a stage wait too long. A snapshot is due only at the end of its minute. */
export function isLateStage({ stage, oldestMs }: StageBacklog): boolean {
  return typeof oldestMs === 'number' && oldestMs > STALLED_MS + (stage === 'sample-snapshots' ? 60_000 : 0);
}

function lateStages({ stages, nowMs }: ProblemFacts): Problem[] {
  return stages.filter(isLateStage).map(({ stage, oldestMs, waiting }) => ({
    since: typeof oldestMs === 'number' ? new Date(nowMs - oldestMs) : null,
    sentence: `${STAGE_NAME[stage] ?? stage} is late: ${count(waiting, 'mark waits', 'marks wait')}.`,
    link: '/ops#stages',
  }));
}

/** Without new samples, the wait of a newer mark is unknown. */
function unknownStages({ stages }: ProblemFacts): Problem[] {
  const names = stages.flatMap(({ stage, oldestMs }) => (oldestMs === 'unknown' ? [STAGE_NAME[stage] ?? stage] : []));
  if (names.length === 0) return [];
  const sentence = `The age of waiting marks is unknown, because no sample of the last two minutes exists: ${names.join(', ')}.`;
  return [{ since: null, sentence, link: '/ops#stages', tone: 'warn' }];
}

function latePublisher({ journal: { checkedAt, readAt } }: ProblemFacts): Problem[] {
  if (readAt.getTime() - checkedAt.getTime() <= UNCONFIRMED_MS) return [];
  const sentence = 'The publisher of the journal is late: streams send no heartbeat, and reads use the database.';
  return [{ since: checkedAt, sentence, link: '/ops#stages' }];
}

function lateDeliveries({ load: { due, oldestOverdueMs }, nowMs }: ProblemFacts): Problem[] {
  if (oldestOverdueMs === null || oldestOverdueMs <= OVERDUE_MS) return [];
  const many = due > MAX_COUNTED_DUE ? `more than ${grouped(MAX_COUNTED_DUE)}` : grouped(due);
  return [
    {
      since: new Date(nowMs - oldestOverdueMs),
      sentence: `Deliveries are late: ${many} ${due === 1 ? 'attempt is' : 'attempts are'} due.`,
      link: '/ops/deliveries?status=pending',
    },
  ];
}

/** A backlog that rose in every sample and has doubled. */
function growingBacklogs({ backlog }: ProblemFacts): Problem[] {
  const samples = backlog.slice(-GROWTH_SAMPLES);
  const kinds = [
    { of: 'marks', name: 'marks of stages', link: '/ops#stages' },
    { of: 'deliveries', name: 'due deliveries', link: '/ops/deliveries?status=pending' },
  ] as const;
  return kinds.flatMap(({ of, name, link }): Problem[] => {
    const values = samples.map((sample) => sample[of]);
    const [first, last] = [values[0], values.at(-1)];
    if (values.length < GROWTH_SAMPLES || first === undefined || last === undefined) return [];
    const isRising = values.every((value, index) => index === 0 || value >= (values[index - 1] ?? 0));
    const isGrowth = isRising && last >= GROWTH_AT_LEAST && (last >= 2 * first || last >= MAX_COUNTED_BACKLOG);
    if (!isGrowth) return [];
    const now = last >= MAX_COUNTED_BACKLOG ? `${grouped(MAX_COUNTED_BACKLOG)} or more` : grouped(last);
    return [
      {
        since: samples[0]?.at ?? null,
        sentence: `The backlog of ${name} grows: from ${grouped(first)} to ${now}.`,
        link,
      },
    ];
  });
}

/** Whether a scheduled poll of a venue fails or is late. The first poll of a new database may still run. */
export function isTroubled(poll: OpsPoll, pollMs: EnabledVenue['pollMs'], nowMs: number): boolean {
  if (!isScheduledPoll(poll.kind, pollMs) || isPollHealthy(poll, pollMs, nowMs)) return false;
  return poll.consecutiveFailures > 0 || poll.lastSuccessAt !== null || isIdlePoll(poll) || !poll.isInFlight;
}

function failingVenues({ venues, polls, processes, nowMs }: ProblemFacts): Problem[] {
  const isPollerLate = processes.some((row) => row.process === 'poller' && isOverloaded(row));
  return venues.flatMap(({ venue, title, pollMs }): Problem[] => {
    const own = polls.filter((poll) => poll.venue === venue);
    if (own.length === 0) {
      const sentence = `${title} was never polled: no poller of this venue runs.`;
      return [{ since: null, sentence, link: `/ops/venues/${encodeURIComponent(venue)}` }];
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
    return [
      {
        since: worst.lastSuccessAt,
        sentence: html`${title} ${problem}${isLate && isPollerLate && ' while the poller is overloaded'}: ${kinds}.${
          lastError !== null && html` <q>${lastError}</q> (${kind}${inARow}).`
        } ${nextAttempt(worst, pollMs, nowMs)}`,
        link: `/ops/venues/${encodeURIComponent(venue)}`,
      },
    ];
  });
}

/** Polls store the same prices, so a feed without data costs freshness only. */
function troubledFeeds({ venues, feeds, gapsSince, nowMs }: ProblemFacts): Problem[] {
  return venues.flatMap(({ venue, title }): Problem[] => {
    const feed = feeds.get(venue);
    if (feed === undefined) return [];
    const { state, reason: why, connectingSince, connectingReason } = feed;
    const warning = (problem: string, since: Date | null, detail: string | null): Problem[] => {
      const cause = detail !== null && html` (<code>${detail}</code>)`;
      const sentence = html`The feed of ${title} ${problem}${cause}. Prices come from polls.`;
      return [{ since, sentence, link: '/ops/venues', tone: 'warn' }];
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

function failingWebhooks({ failing, failingTotal, nowMs }: ProblemFacts): Problem[] {
  const active = failing.filter(({ status }) => status === 'active');
  const lasting = active.filter(
    ({ failingSince, exhausted }) => exhausted > 0 || nowMs - failingSince.getTime() > FAILING_MS,
  );
  const named = lasting.slice(0, MAX_NAMED);
  const more = failingTotal - (active.length - lasting.length) - named.length;
  return [
    ...named.map(
      ({ id, url, account, failingSince, lastError, lastStatusCode }): Problem => ({
        since: failingSince,
        sentence: html`Webhook <span class="long">${endpointName(url)}</span> of ${account} fails${reason(lastError, lastStatusCode)}.`,
        link: `/ops/webhooks/${encodeURIComponent(id)}`,
      }),
    ),
    ...moreOf(more, 'fail'),
  ];
}

function partlyFailingWebhooks({ partlyFailing, partlyFailingTotal }: ProblemFacts): Problem[] {
  const named = partlyFailing.slice(0, MAX_NAMED);
  return [
    ...named.map(
      ({ id, url, account, since, failed, retrying, lastError, lastStatusCode }): Problem => ({
        since,
        sentence: html`Webhook <span class="long">${endpointName(url)}</span> of ${account} fails in part${reason(lastError, lastStatusCode)}: of the last hour, ${[
          ...(failed > 0 ? [count(failed, 'delivery failed', 'deliveries failed')] : []),
          ...(retrying > 0 ? [count(retrying, 'delivery retries', 'deliveries retry')] : []),
        ].join(' and ')}.`,
        link: `/ops/webhooks/${encodeURIComponent(id)}`,
        tone: 'warn',
      }),
    ),
    ...moreOf(partlyFailingTotal - named.length, 'fail in part').map((problem) => ({
      ...problem,
      tone: 'warn' as const,
    })),
  ];
}

function moreOf(more: number, verb: 'fail' | 'fail in part'): Problem[] {
  if (more <= 0) return [];
  const sentence = `${count(more, 'more webhook', 'more webhooks')} ${more === 1 ? verb.replace('fail', 'fails') : verb}.`;
  return [{ since: null, sentence, link: '/ops/webhooks' }];
}

function reason(lastError: string | null, lastStatusCode: number | null): HtmlValue {
  if (lastStatusCode !== null) return ` with status ${lastStatusCode}`;
  return lastError !== null && html` with <code>${lastError}</code>`;
}

function deadLetters({ stages }: ProblemFacts): Problem[] {
  return stages
    .filter(({ deadLetters: dead }) => dead > 0)
    .map(({ stage, deadLetters: dead, deadSince }) => ({
      since: deadSince,
      sentence: `${STAGE_NAME[stage] ?? stage}: ${count(dead, 'mark is', 'marks are')} dead-lettered.`,
      link: '/ops/alerts',
      tone: 'warn' as const,
    }));
}

/** Retention keeps the rows that are not archived, so nothing is lost. */
function failingArchive({ archive, nowMs }: ProblemFacts): Problem[] {
  if (archive === null) return [];
  const { failures, due } = archive;
  const [first] = failures;
  if (first !== undefined) {
    const more =
      failures.length > 1
        ? ` ${count(failures.length - 1, 'other kind of a venue fails', 'other kinds of venues fail')}.`
        : '';
    const sentence = html`The archive fails: ${failureSubject(first)}, ${count(first.failures, 'failure', 'failures')} in a row. <q>${first.message}</q>${more}`;
    return [{ since: first.since, sentence, link: '/ops#archive', tone: 'warn' }];
  }
  if (due.first === null || nowMs - Date.parse(due.first) < ARCHIVE_LATE_MS) return [];
  const sentence = `The archive is late: ${count(due.days, 'day is', 'days are')} due, the first is ${due.first}.`;
  return [{ since: null, sentence, link: '/ops#archive', tone: 'warn' }];
}

function count(value: number, one: string, many: string): string {
  return `${grouped(value)} ${value === 1 ? one : many}`;
}

function grouped(value: number): string {
  return value.toLocaleString('en-US');
}
