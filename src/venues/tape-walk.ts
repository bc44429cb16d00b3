import { z } from 'zod';
import type { TapePage } from './port.ts';

/**
 * The walk over a global feed of trades, newest first. A head walk reads from the newest trade down to the newest known second. A full walk
 * reads on to the watermark less an overlap, for late rows: after any doubt and otherwise every `OVERLAP_EVERY_MS`. What is left of a full
 * walk below the known seconds is read between head walks, some reads after each. The watermark moves to the newest second of a full walk
 * at its end, so no late row falls between two of them. A long rest becomes a gap and counts as walked: gaps are filled between walks, so
 * hours of history never delay the newest trades. After a crash the walk repeats a part. The feed of each venue decides how a stretch is
 * read and where a walk begins.
 */
export interface TapeSettings {
  overlapSeconds: number;
  /** Reads of the rest of a full walk after each head walk: a bound of the cost of a tick at any rate of trades. */
  overlapReads: number;
  initialLookbackSeconds: number;
  /** A longer rest of a walk becomes a gap. */
  longGapSeconds: number;
  /** Interval of reads of the newest trades while gaps exist. */
  headEveryMs: number;
}

/** The overlap is read again after this time, from the start of one read to the start of the next. */
const OVERLAP_EVERY_MS = 15_000;

/** Whether the overlap, which a tape read last at `atMs`, is to be read again. */
export function isOverlapDue(atMs: number, nowMs: number): boolean {
  return nowMs < atMs || nowMs - atMs >= OVERLAP_EVERY_MS;
}

const second = z.number().int();
/** Seconds still to be read, newest first: the common part of walks, gaps and a market's history. */
export const stretch = z.object({
  /** The newest unread second. */
  next: second,
  /** The last second to read. */
  floor: second,
  /** The cursor of the next page; absent where the time alone names it. */
  cursor: z.string().exactOptional(),
  /** The end of the request of the cursor, at venues that take one; absent when it began at the newest trade. */
  end: second.exactOptional(),
});
export type Stretch = z.infer<typeof stretch>;

const walk = stretch.extend({ top: second });
type Walk = z.infer<typeof walk>;

/** The state of head walks. Releases without them ignore it, and read everything above the watermark and the overlap again. */
const tip = z.object({
  /** All seconds up to this one were read, except gaps. Above the watermark, the overlap was not read since. */
  second,
  /** The current head walk: `top` becomes `second`. */
  walk: walk.exactOptional(),
  /** The start of the latest full walk, epoch milliseconds. */
  overlapAtMs: z.number(),
  /** The next walk is a full one, whenever the latest one began. */
  isOverlapDue: z.literal(true).exactOptional(),
  /** Reads of the rest of a full walk since the latest head walk. */
  reads: z.number().int(),
});
type Tip = z.infer<typeof tip>;

export const tapePosition = z.object({
  v: z.literal(1),
  /** All seconds up to this one were read, and the overlap behind it, except gaps. */
  watermark: second,
  /** The start of the latest walk, epoch milliseconds. */
  headAtMs: z.number(),
  /** The current full walk: `top` becomes the watermark. */
  walk: walk.exactOptional(),
  gaps: z.array(stretch),
  /** The latest walk went before a gap, so a page of the gap is next: slow walks must not delay it without end. */
  isGapNext: z.literal(true).exactOptional(),
  /** The first second of the present version of a feed: earlier ones have other ids there. Absent where the feed has one version. */
  since: second.exactOptional(),
  tip: tip.exactOptional(),
});
export type TapePosition = z.infer<typeof tapePosition>;
type Opened = TapePosition & { tip: Tip };

/** The position before the first walk. */
export function newTape(nowMs: number, { initialLookbackSeconds }: TapeSettings): TapePosition {
  return { v: 1, watermark: Math.floor(nowMs / 1000) - initialLookbackSeconds, headAtMs: 0, gaps: [] };
}

interface TapeRow {
  /** Epoch seconds; undefined when the row has no usable time. */
  second?: number | undefined;
  trade?: unknown;
  skipped?: string;
  isKnown?: true;
}

export interface StretchRead<Row> {
  rows: Row[];
  /** Undefined when everything was read, or the rest is unreadable. */
  left?: Stretch;
  /** The unread part, if any. */
  truncated?: string;
}

/** Where a walk begins. */
interface Head {
  /** The newest known second. */
  known: number;
  /** The last second to read: the known one, or that of the overlap. */
  floor: number;
  isFull: boolean;
}

interface Tape<Row> {
  settings: TapeSettings;
  nowMs: number;
  /** See `TapeKnowledge`. */
  isContinued: boolean;
  /** Reads the next pages of a stretch. */
  read(from: Stretch): Promise<StretchRead<Row>>;
  /** Begins a walk with its first pages. Without `walk` they have no new second. Undefined: it is too early for a walk. */
  begin(head: Head): Promise<{ walk?: Walk; read: StretchRead<Row> } | undefined>;
}

/** The rows of one call, and the position after them. */
export interface TapeStep<Row> extends Omit<StretchRead<Row>, 'left'>, Pick<TapePage, 'more' | 'caughtUpMs'> {
  position: TapePosition;
}

/** Reads the next pages after a position: of its walks, of a gap, or of a new walk. */
export async function walkTape<Row extends TapeRow>(stored: TapePosition, tape: Tape<Row>): Promise<TapeStep<Row>> {
  const { settings, nowMs } = tape;
  const at = opened(stored, tape);
  const { tip } = at;
  if (tip.walk) return afterWalk(at, tip.walk, 'head', await tape.read(tip.walk), tape);
  if (at.walk && isFullWalkNext(at, settings)) return afterWalk(at, at.walk, 'full', await tape.read(at.walk), tape);
  const [gap, ...others] = at.gaps;
  const sinceHeadMs = nowMs - at.headAtMs;
  if (gap && (at.isGapNext || (sinceHeadMs >= 0 && sinceHeadMs < settings.headEveryMs))) {
    const { left, ...page } = await tape.read(gap);
    const { isGapNext: _, ...rest } = at;
    return { ...page, ...placed({ ...rest, gaps: left ? [left, ...others] : others }, settings, true) };
  }
  const isFull = !at.walk && (tip.isOverlapDue === true || isOverlapDue(tip.overlapAtMs, nowMs));
  // Before the first walk lies history, and no overlap.
  const overlapFloor = at.headAtMs === 0 ? at.watermark : at.watermark - settings.overlapSeconds;
  const head = await tape.begin({ known: tip.second, floor: isFull ? overlapFloor : tip.second, isFull });
  if (!head) return { rows: [], ...placed(at, settings, false) };
  const { isOverlapDue: _, ...waited } = tip;
  const begun: Opened = {
    ...at,
    headAtMs: nowMs,
    tip: isFull ? { ...waited, overlapAtMs: nowMs, reads: 0 } : { ...tip, reads: 0 },
    ...(gap && { isGapNext: true }),
  };
  if (!head.walk) return { rows: head.read.rows, ...placed(begun, settings, isFull) };
  return afterWalk(begun, head.walk, isFull ? 'full' : 'head', head.read, tape);
}

/** The position with the state of its head walks: a position without it, or after any doubt, requests a full walk. */
function opened(stored: TapePosition, { isContinued }: Pick<Tape<unknown>, 'isContinued'>): Opened {
  const { tip = { second: stored.watermark, overlapAtMs: stored.headAtMs, isOverlapDue: true as const, reads: 0 } } =
    stored;
  return { ...stored, tip: isContinued ? tip : { ...tip, isOverlapDue: true } };
}

/** The part of a full walk with new seconds goes before everything else, the rest has its turns. */
function isFullWalkNext({ walk, tip }: Opened, { overlapReads }: TapeSettings): boolean {
  return walk !== undefined && (walk.next >= tip.second || tip.reads < overlapReads);
}

/** The page and the position after a read of a walk. */
function afterWalk<Row extends TapeRow>(
  at: Opened,
  walk: Walk,
  kind: 'head' | 'full',
  { left, ...read }: StretchRead<Row>,
  { settings, nowMs }: Tape<Row>,
): TapeStep<Row> {
  const { tip } = at;
  // Rejected and skipped rows of known seconds were counted when they were first read.
  const isStored = ({ trade, skipped, isKnown }: Row) => isKnown || (trade !== undefined && skipped === undefined);
  const rows = read.rows.filter((row) => isStored(row) || (row.second ?? Number.POSITIVE_INFINITY) > tip.second);
  const newest = read.rows.reduce((latest, row) => Math.max(latest, row.second ?? 0), 0);
  // A trade ahead of this clock must not move the watermark past later trades.
  const top = Math.max(walk.top, Math.min(newest, Math.floor(nowMs / 1000)));
  // A lagging replica of the venue may show an older feed than before: the known seconds and the watermark never fall.
  const known = Math.max(tip.second, top);
  const page = { ...read, rows };
  if (left && left.next - left.floor <= settings.longGapSeconds) {
    const next = { ...left, top };
    if (kind === 'head') return { ...page, ...placed({ ...at, tip: { ...tip, walk: next } }, settings, false) };
    const isRest = left.next < tip.second;
    const reads = walk.next < tip.second ? tip.reads + 1 : tip.reads;
    const after = { ...at, walk: next, tip: { ...tip, reads, ...(isRest && { second: known }) } };
    return { ...page, ...placed(after, settings, false) };
  }
  const gaps = left ? [...at.gaps, left] : at.gaps;
  if (kind === 'head') {
    const { walk: _, ...ended } = tip;
    return { ...page, ...placed({ ...at, gaps, tip: { ...ended, second: known } }, settings, false) };
  }
  const { walk: _, ...ended } = at;
  const watermark = Math.max(at.watermark, top);
  return { ...page, ...placed({ ...ended, watermark, gaps, tip: { ...tip, second: known } }, settings, true) };
}

/**
 * The position, with the moment up to which the feed was read without a gap: the start of the latest full walk, once it and all gaps
 * ended (`isEnd`: one of them may have). Head walks alone find no late rows, so they prove nothing.
 */
function placed(position: Opened, settings: TapeSettings, isEnd: boolean): Omit<TapeStep<never>, 'rows'> {
  const { walk, gaps, tip } = position;
  const isComplete = isEnd && walk === undefined && gaps.length === 0;
  const more = tip.walk !== undefined || gaps.length > 0 || isFullWalkNext(position, settings);
  return { position, more, ...(isComplete && { caughtUpMs: tip.overlapAtMs }) };
}

/** Far below the deadline of a poll: a slow machine stores its pages before its tick ends. */
const CALL_MS = 10_000;

/** Tells when a call that begins now, and reads several pages, begins no further one. The next call continues at its position. */
export function callEnd(callMs = CALL_MS): () => boolean {
  const endsAtMs = performance.now() + callMs;
  return () => performance.now() >= endsAtMs;
}
