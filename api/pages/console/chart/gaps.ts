import type { CoverageCause, CoverageReason } from '../../../../src/domain/markets/coverage.ts';
import type { CoverageHourBody } from '../../../contract/completeness.ts';
import { MAX_GAPS } from '../../../contract/feed.ts';
import { type Html, html } from '../../kit/html.ts';
import { type Market, orNothing } from '../answers.ts';
import type { ConsoleRequest } from '../route.ts';
import type { ChartWindow, Point, Series } from '../series.ts';
import { fromSeconds, minute } from '../values.ts';

const HOUR_SECONDS = 3_600;
/** The rows of one answer. */
const HOURS_PER_CALL = 1_000;
/** A chart of years would need dozens of answers. Earlier hours count as unknown. */
const MAX_CALLS = 2;
const MAX_LISTED = 20;

/** A time in which the history of an outcome is not complete: epoch seconds, `[from, to)`. */
export interface Gap {
  from: number;
  to: number;
  /** `pending`: the hours are not judged yet. */
  kind: 'gap' | 'unknown' | 'pending';
  why: string;
}

/** A gap with its effect on a line. */
interface FoundGap extends Gap {
  /** The values within it repeat the last one before it. */
  isCarried: boolean;
  /** Data is missing for certain, so that no line may connect its ends. */
  breaks: boolean;
}

/** The gaps of the prices and of the trades of a market. */
export interface Gaps {
  prices: FoundGap[];
  trades: FoundGap[];
}

/** A point of a line. `gap`: data is missing between it and the next one. */
export type LinePoint = Point & { gap?: true };

const CAUSE_WORDS: Readonly<Record<CoverageCause, string>> = {
  missing_trades: 'trades are missing, as the total of the venue shows',
  poll_pause: 'the venue was not read',
  feed_gap: 'the feed lost changes; polls continued',
};

const REASON_WORDS: Readonly<Record<CoverageReason, string>> = {
  not_settled: 'not judged yet',
  not_observed: 'before the first evidence of completeness',
  not_listed: 'the market is not listed',
  not_recorded: 'not recorded',
  no_total: 'the venue states no comparable total',
  no_earlier_total: 'no total of the venue before it',
  no_later_total: 'no total of the venue after it',
  total_behind: 'the venue’s total lacks stored trades',
  beside_gap: 'a loss of trades touches it',
  imprecise: 'too many trades for an exact comparison',
  not_folded: 'candles are not finished',
  not_compared: 'trades were not compared with the venue',
  records_rejected: 'records of the venue were rejected',
  history_not_served: 'the venue serves no older trades',
  history_not_read: 'older trades were not read',
  markets_without_total: 'the venue states no comparable total',
  markets_unknown: 'other markets are unknown',
};
const NOT_READ = 'its coverage was not read';

/** Reads which hours of a window are not complete: of the prices and of the trades. Without an answer the whole time is unknown. */
export async function readGaps(
  { api, nowMs }: Pick<ConsoleRequest, 'api' | 'nowMs'>,
  { venue, market_id, open_at, created_at }: Pick<Market, 'venue' | 'market_id' | 'open_at' | 'created_at'>,
  window: ChartWindow,
): Promise<Gaps> {
  const now = Math.floor(nowMs / 1_000);
  const begun = Math.min(open_at ?? Number.POSITIVE_INFINITY, created_at ?? Number.POSITIVE_INFINITY);
  const first = hourOf(Number.isFinite(begun) ? Math.max(window.start, begun) : window.start);
  const spans: { start: number; end: number }[] = [];
  for (
    let end = hourOf(now) + HOUR_SECONDS;
    end > first && spans.length < MAX_CALLS;
    end -= HOURS_PER_CALL * HOUR_SECONDS
  ) {
    spans.unshift({ start: Math.max(first, end - HOURS_PER_CALL * HOUR_SECONDS), end });
  }
  const oldest = spans[0]?.start ?? first;
  const unread = oldest > first ? [whole(first, oldest)] : [];

  async function of(kind: keyof Gaps): Promise<FoundGap[]> {
    const read = spans.map(async ({ start, end }) => {
      const query = { kind, market_id, start, end, limit: HOURS_PER_CALL };
      const found = await orNothing(api<CoverageHourBody[]>({ operationId: 'listCoverage', params: { venue }, query }));
      return found === undefined ? [whole(start, end)] : found.data.flatMap((hour) => gapOf(hour));
    });
    const found = merged([...unread, ...(await Promise.all(read)).flat()]);
    return found.map((gap) => ({ ...gap, to: Math.min(gap.to, now) })).filter(({ from, to }) => from < to);
  }

  const [prices, trades] = await Promise.all([of('prices'), of('trades')]);
  return { prices, trades };
}

const hourOf = (seconds: number) => Math.floor(seconds / HOUR_SECONDS) * HOUR_SECONDS;
const whole = (from: number, to: number): FoundGap => ({
  from,
  to,
  kind: 'unknown',
  why: NOT_READ,
  isCarried: false,
  breaks: false,
});

function gapOf({ start, class: found, cause, reason, from, to }: CoverageHourBody): FoundGap[] {
  const end = start + HOUR_SECONDS;
  if (found === 'gap') {
    const [begin, stop] = [Math.max(start, from ?? start), Math.min(end, to ?? end)];
    return [
      {
        ...(begin < stop ? { from: begin, to: stop } : { from: start, to: end }),
        kind: 'gap',
        why: cause === undefined ? 'data is missing' : CAUSE_WORDS[cause],
        isCarried: cause === 'poll_pause',
        breaks: cause !== 'feed_gap',
      },
    ];
  }
  if (found !== 'unknown') return [];
  const why = reason === undefined ? 'nothing is proven' : REASON_WORDS[reason];
  const breaks = reason === 'history_not_served' || reason === 'history_not_read';
  const kind = reason === 'not_settled' ? 'pending' : 'unknown';
  return [{ from: start, to: end, kind, why, isCarried: false, breaks }];
}

/** Neighbours with the same reason are one gap. */
function merged(gaps: readonly FoundGap[]): FoundGap[] {
  const all: FoundGap[] = [];
  for (const gap of gaps) {
    const last = all.at(-1);
    if (last !== undefined && last.kind === gap.kind && last.why === gap.why && last.to >= gap.from) last.to = gap.to;
    else all.push({ ...gap });
  }
  return all;
}

/** The gaps of the line of a series: of the trades before its first quote, and of the prices from then on. */
export function lineGaps({ firstQuote, feedGaps }: Series, { prices, trades }: Gaps, nowMs: number): FoundGap[] {
  const now = Math.floor(nowMs / 1_000);
  const ofFeed = feedGaps.map(
    ({ start, end }): FoundGap => ({
      from: start,
      to: end ?? now,
      kind: 'gap',
      why: CAUSE_WORDS.feed_gap,
      isCarried: false,
      breaks: false,
    }),
  );
  // The exact times of a gap replace those of its hours, as far as they reach: an answer has the oldest ones only.
  const exactUntil = ofFeed.length < MAX_GAPS ? now : Math.max(...ofFeed.map(({ to }) => to));
  const ofPolls = prices.flatMap((gap) => {
    if (ofFeed.length === 0 || gap.why !== CAUSE_WORDS.feed_gap) return [gap];
    return gap.to > exactUntil ? [{ ...gap, from: Math.max(gap.from, exactUntil) }] : [];
  });
  return [
    ...clipped(trades, Number.NEGATIVE_INFINITY, firstQuote),
    ...clipped(
      [...ofPolls, ...ofFeed].toSorted((a, b) => a.from - b.from),
      firstQuote,
      now,
    ),
  ];
}

function clipped(gaps: readonly FoundGap[], from: number, to: number): FoundGap[] {
  return gaps
    .map((gap) => ({ ...gap, from: Math.max(gap.from, from), to: Math.min(gap.to, to) }))
    .filter((gap) => gap.from < gap.to);
}

/** A line without the values that are repeated over a gap. It is broken where a gap has no point. */
export function brokenLine(line: readonly Point[], gaps: readonly FoundGap[], intervalSeconds: number): LinePoint[] {
  const kept = line.filter(
    ({ time }) => !gaps.some(({ isCarried, from, to }) => isCarried && from < time && time < to),
  );
  return kept.map((point, index) => {
    const next = kept[index + 1];
    if (next === undefined || next.time - point.time <= intervalSeconds) return point;
    const isBroken = gaps.some(({ breaks, from, to }) => breaks && from < next.time && point.time < to);
    return isBroken ? { ...point, gap: true } : point;
  });
}

/** The gaps as a page shows them. */
export function shownGaps(gaps: readonly FoundGap[]): Gap[] {
  return gaps.map(({ from, to, kind, why }) => ({ from, to, kind, why }));
}

const KIND_WORDS: Readonly<Record<Gap['kind'], string>> = {
  gap: 'not complete',
  unknown: 'unknown',
  pending: 'not judged yet',
};

/** The first start of each name. */
function firstOf(gaps: readonly (Gap & { of: string })[]): Map<string, number> {
  const first = new Map<string, number>();
  for (const { of, from } of gaps) first.set(of, Math.min(from, first.get(of) ?? from));
  return first;
}

/** The gaps of a chart in words, for people without the picture. */
export function gapList(gaps: readonly (Gap & { of: string })[]): Html {
  const [known, pending] = [
    gaps.filter(({ kind }) => kind !== 'pending'),
    gaps.filter(({ kind }) => kind === 'pending'),
  ];
  const tail =
    pending.length > 0 &&
    html`<p class="muted">Not judged yet: ${[...firstOf(pending)].map(
      ([of, from], index) => html`${index > 0 && ', '}${of} since ${minute(fromSeconds(from))} UTC`,
    )}.</p>`;
  if (known.length === 0) return html`${tail}`;
  const newest = known.toSorted((a, b) => b.from - a.from);
  const more = newest.length - MAX_LISTED;
  return html`<details class="more"><summary>History of this range is not proven complete in ${
    known.length === 1 ? 'one time' : `${known.length} times`
  } (hatched)</summary>
<ul class="gap-list">${newest
    .slice(0, MAX_LISTED)
    .map(
      ({ from, to, kind, why, of }) =>
        html`<li>${minute(fromSeconds(from))} to ${minute(fromSeconds(to))} UTC, ${of}: <strong>${KIND_WORDS[kind]}</strong>, ${why}</li>`,
    )}${more > 0 && html`<li>and ${more} earlier ones</li>`}</ul></details>${tail}`;
}
