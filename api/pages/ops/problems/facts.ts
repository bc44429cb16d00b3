import type { FeedState } from '../../../../src/store/feeds/streamers.ts';
import type { JournalHead } from '../../../../src/store/journal/read-journal.ts';
import type { ExpiringKeys, UnfinishedActions } from '../../../../src/store/ops/actions.ts';
import type { ProcessHeartbeat } from '../../../../src/store/ops/heartbeats.ts';
import type { BacklogSample, DeliveryLoad, FailingEndpoint, StageBacklog } from '../../../../src/store/ops/overview.ts';
import type { OpsPoll } from '../../../../src/store/ops/venues.ts';
import type { PartlyFailingWebhook } from '../../../../src/store/ops/webhooks.ts';
import { isIdlePoll, isPollHealthy, isScheduledPoll } from '../../../reads/poll-health.ts';
import type { EnabledVenue } from '../../../reads/venue-catalog.ts';
import type { Problem } from '../../kit/problems.ts';
import type { ArchiveFacts } from '../overview-archive.ts';

/** The subject of a problem: the pages about it show it. */
export type Area =
  | 'host'
  | 'processes'
  | 'stages'
  | 'venues'
  | 'deliveries'
  | 'webhooks'
  | 'alerts'
  | 'archive'
  | 'keys'
  | 'audit';

export interface OpsProblem extends Problem {
  area: Area;
  /** Work that is late or missing: the machine may be its cause. */
  isLate?: true;
  /** The machine that it is about, when it is one. */
  host?: string;
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
  /** Keys in use that end within days. */
  expiringKeys: ExpiringKeys;
  /** Actions of operators without an end. */
  unfinished: UnfinishedActions;
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
/** A mark usually waits about a second. An older mark means a stalled stage. */
const STALLED_MS = 120_000;
/** An attempt that is overdue for longer means that too few deliverers run. */
export const OVERDUE_MS = 60_000;

/** Whether a running process gets too little processor time. */
export function isOverloaded(row: ProcessHeartbeat): boolean {
  return !isSilent(row) && (row.lateShare ?? 0) >= OVERLOADED_SHARE;
}

export function percentOf(share: number | null | undefined): string {
  return `${Math.round(100 * (share ?? 0))} %`;
}

/** Whether a process sends no heartbeat. */
export function isSilent({ silentMs }: ProcessHeartbeat): boolean {
  return silentMs > SILENT_MS;
}

/** Whether marks of a stage wait too long. A snapshot is due only at the end of its minute. */
export function isLateStage({ stage, oldestMs }: StageBacklog): boolean {
  return typeof oldestMs === 'number' && oldestMs > STALLED_MS + (stage === 'sample-snapshots' ? 60_000 : 0);
}

/** Whether a scheduled poll of a venue fails or is late. The first poll of a new database may still run. */
export function isTroubled(poll: OpsPoll, pollMs: EnabledVenue['pollMs'], nowMs: number): boolean {
  if (!isScheduledPoll(poll.kind, pollMs) || isPollHealthy(poll, pollMs, nowMs)) return false;
  return poll.consecutiveFailures > 0 || poll.lastSuccessAt !== null || isIdlePoll(poll) || !poll.isInFlight;
}

export function count(value: number, one: string, many: string): string {
  return `${grouped(value)} ${value === 1 ? one : many}`;
}

export function grouped(value: number): string {
  return value.toLocaleString('en-US');
}
