import { z } from 'zod';
import type { TapePage } from './port.ts';

/**
 * The walk over a global feed of trades, newest first: from the newest trade down to the stored watermark less an overlap for late rows.
 * The watermark moves once everything down to the old one is read. A long rest becomes a gap and moves the watermark too: gaps are filled
 * between walks, so hours of history never delay the newest trades. After a crash the walk repeats a part. The feed of each venue decides
 * how a stretch is read and where a walk begins.
 */
export interface TapeSettings {
  overlapSeconds: number;
  initialLookbackSeconds: number;
  /** A longer rest of a walk becomes a gap. */
  longGapSeconds: number;
  /** Interval of reads of the newest trades while gaps exist. */
  headEveryMs: number;
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

export const tapePosition = z.object({
  v: z.literal(1),
  /** All seconds up to this one were read, except gaps. */
  watermark: second,
  /** The start of the latest walk, epoch milliseconds. */
  headAtMs: z.number(),
  /** The current walk: `top` becomes the watermark. */
  walk: stretch.extend({ top: second }).exactOptional(),
  gaps: z.array(stretch),
  /** The latest walk went before a gap, so a page of the gap is next: slow walks must not delay it without end. */
  isGapNext: z.literal(true).exactOptional(),
  /** The first second of the present version of a feed: earlier ones have other ids there. Absent where the feed has one version. */
  since: second.exactOptional(),
});
export type TapePosition = z.infer<typeof tapePosition>;

/** The position before the first walk. */
export function newTape(nowMs: number, { initialLookbackSeconds }: TapeSettings): TapePosition {
  return { v: 1, watermark: Math.floor(nowMs / 1000) - initialLookbackSeconds, headAtMs: 0, gaps: [] };
}

interface TapeRow {
  /** Epoch seconds; undefined when the row has no usable time. */
  second?: number | undefined;
  trade?: unknown;
  skipped?: string;
}

export interface StretchRead<Row> {
  rows: Row[];
  /** Undefined when everything was read, or the rest is unreadable. */
  left?: Stretch;
  /** The unread part, if any. */
  truncated?: string;
}

interface Tape<Row> {
  settings: TapeSettings;
  nowMs: number;
  /** Reads the next pages of a stretch. */
  read(from: Stretch): Promise<StretchRead<Row>>;
  /** Begins a walk with its first pages. Without `walk` they have no new second. Undefined: it is too early for a walk. */
  begin(): Promise<{ walk?: Walk; read: StretchRead<Row> } | undefined>;
}

type Walk = NonNullable<TapePosition['walk']>;

/** The rows of one call, and the position after them. It has caught up when nothing is left to be read. */
export interface TapeStep<Row> extends Omit<StretchRead<Row>, 'left'>, Pick<TapePage, 'more' | 'caughtUpMs'> {
  position: TapePosition;
}

/** Reads the next pages after a position: of its walk, of a gap, or of a new walk. */
export async function walkTape<Row extends TapeRow>(at: TapePosition, tape: Tape<Row>): Promise<TapeStep<Row>> {
  if (at.walk) return afterWalk(at, at.walk, await tape.read(at.walk), tape);
  const [gap, ...others] = at.gaps;
  const sinceHeadMs = tape.nowMs - at.headAtMs;
  if (gap && (at.isGapNext || (sinceHeadMs >= 0 && sinceHeadMs < tape.settings.headEveryMs))) {
    const { left, ...page } = await tape.read(gap);
    const { isGapNext: _, ...rest } = at;
    return { ...page, ...placed({ ...rest, gaps: left ? [left, ...others] : others }) };
  }
  const head = await tape.begin();
  if (!head) return { rows: [], ...placed(at) };
  const begun: TapePosition = { ...at, headAtMs: tape.nowMs, ...(gap && { isGapNext: true }) };
  if (!head.walk) return { rows: head.read.rows, ...placed(begun) };
  return afterWalk(begun, head.walk, head.read, tape);
}

/** The page and the position after a read of a walk. */
function afterWalk<Row extends TapeRow>(
  at: TapePosition,
  walk: Walk,
  { left, ...read }: StretchRead<Row>,
  { settings, nowMs }: Tape<Row>,
): TapeStep<Row> {
  // Rejected and skipped rows below the watermark were counted when they were first read.
  const isStored = ({ trade, skipped }: Row) => trade !== undefined && skipped === undefined;
  const rows = read.rows.filter((row) => isStored(row) || (row.second ?? Number.POSITIVE_INFINITY) > at.watermark);
  const newest = read.rows.reduce((latest, row) => Math.max(latest, row.second ?? 0), 0);
  // A trade ahead of this clock must not move the watermark past later trades.
  const top = Math.max(walk.top, Math.min(newest, Math.floor(nowMs / 1000)));
  const page = { ...read, rows };
  if (left && left.next - left.floor <= settings.longGapSeconds) {
    return { ...page, ...placed({ ...at, walk: { ...left, top } }) };
  }
  const { walk: _, ...rest } = at;
  // A lagging replica of the venue may show an older feed than before: the watermark never falls.
  const passed = { ...rest, watermark: Math.max(at.watermark, top), gaps: left ? [...at.gaps, left] : at.gaps };
  return { ...page, ...placed(passed) };
}

function placed(position: TapePosition): Omit<TapeStep<never>, 'rows'> {
  const more = position.walk !== undefined || position.gaps.length > 0;
  return { position, more, ...(!more && { caughtUpMs: position.headAtMs }) };
}

/** Far below the deadline of a poll: a slow machine stores its pages before its tick ends. */
const CALL_MS = 10_000;

/** Tells when a call that begins now, and reads several pages, begins no further one. The next call continues at its position. */
export function callEnd(callMs = CALL_MS): () => boolean {
  const endsAtMs = performance.now() + callMs;
  return () => performance.now() >= endsAtMs;
}
