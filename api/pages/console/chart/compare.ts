import { INTERVAL_SECONDS } from '../../../../src/domain/markets/candle.ts';
import { cut } from '../../../../src/domain/webhooks/chat-values.ts';
import { lineSwatch } from '../../kit/drawings.ts';
import { type Html, html, NONE } from '../../kit/html.ts';
import type { Market } from '../answers.ts';
import type { ConsoleRequest } from '../route.ts';
import { type ChartWindow, readSeries, type Series } from '../series.ts';
import { percent } from '../values.ts';
import { brokenLine, type Gap, type Gaps, type LinePoint, lineGaps, readGaps, shownGaps } from './gaps.ts';
import { type MarketRequest, pricesOf, quoteOf } from './view.ts';

/** The lines of one chart, with the one of the page. As many as have a colour and a pattern of their own. */
export const MAX_LINES = 6;
const MAX_LABEL = 40;

/** An outcome that a chart can show. */
export interface Member {
  market: Market;
  outcome_id: string;
  label: string;
}

/** A line of a chart with the gaps of its history. */
export interface ChartLine {
  outcome_id: string;
  label: string;
  line: LinePoint[];
  gaps: Gap[];
}

/** An outcome with the name that tells it from others of its market and its event. */
export function memberOf(market: Market, { outcome_id, label }: { outcome_id: string; label: string }): Member {
  const own = market.outcomes.length > 2 ? label || outcome_id : (market.sibling_label ?? label);
  const isFirst = market.outcomes.length > 2 || market.outcomes[0]?.outcome_id === outcome_id;
  return { market, outcome_id, label: isFirst || own === label ? own : `${own} · ${label}` };
}

/** The outcomes that can be compared with an outcome: the others of more than two, and the first ones of other markets of the event. */
export function candidatesOf(market: Market, shown: string | undefined, siblings: readonly Market[]): Member[] {
  const own = market.outcomes.length > 2 ? market.outcomes.filter(({ outcome_id }) => outcome_id !== shown) : [];
  return [
    ...own.map((outcome) => memberOf(market, outcome)),
    ...siblings.flatMap((sibling) => sibling.outcomes.slice(0, 1).map((outcome) => memberOf(sibling, outcome))),
  ];
}

/** The candidates that the address names, in the order of the address and at most `most`. It ignores others: markets leave an event. */
export function chosenOf(
  { query }: Pick<ConsoleRequest, 'query'>,
  candidates: readonly Member[],
  most: number,
): Member[] {
  const named = [...new Set(query.getAll('compare'))];
  return named.flatMap((id) => candidates.find(({ outcome_id }) => outcome_id === id) ?? []).slice(0, most);
}

/** Reads the line of an outcome with its gaps. */
export async function readLine(
  request: Pick<MarketRequest, 'api' | 'nowMs'>,
  { market, outcome_id, label }: Member,
  window: ChartWindow,
  gaps: Promise<Gaps> | Gaps,
): Promise<ChartLine & { series: Series }> {
  const prices = await pricesOf(request, market);
  const [series, found] = await Promise.all([
    readSeries(request, market, outcome_id, window, quoteOf(prices, outcome_id)?.price),
    gaps,
  ]);
  const own = lineGaps(series, found, request.nowMs);
  const line = brokenLine(series.line, own, INTERVAL_SECONDS[window.interval]);
  return { outcome_id, label, line, gaps: shownGaps(own), series };
}

/** Reads the lines of outcomes. Lines of one market share its gaps. */
export async function readLines(
  request: Pick<MarketRequest, 'api' | 'nowMs'>,
  members: readonly Member[],
  window: ChartWindow,
  known: ReadonlyMap<string, Promise<Gaps>> = new Map(),
): Promise<ChartLine[]> {
  const gaps = new Map(known);
  return Promise.all(
    members.map(async (member) => {
      const { market_id } = member.market;
      const own = gaps.get(market_id) ?? readGaps(request, member.market, window);
      gaps.set(market_id, own);
      const { outcome_id, label, line, gaps: shown } = await readLine(request, member, window, own);
      return { outcome_id, label, line, gaps: shown };
    }),
  );
}

/** The names of the lines with their last values, which the script replaces by those at the cursor. */
export function lineLegend(lines: readonly ChartLine[]): Html {
  if (lines.length < 2) return html``;
  return html`<ul class="chart-legend">${lines.map(
    ({ outcome_id, label, line }, index) =>
      html`<li>${lineSwatch(index)}${cut(label, MAX_LABEL)}
<strong class="num" data-line="${outcome_id}">${percent(line.at(-1)?.value) ?? NONE}</strong></li>`,
  )}</ul>`;
}

/**
 * The choice of the lines. It is a form of the page, so that it works without scripts. `standard` are the lines of an address without a
 * choice.
 */
export function compareForm(
  candidates: readonly Member[],
  chosen: readonly Member[],
  {
    hidden,
    most,
    standard = [],
  }: {
    hidden: readonly (readonly [name: string, value: string])[];
    most: number;
    standard?: readonly Member[];
  },
): Html {
  if (candidates.length === 0) return html``;
  const ids = new Set(chosen.map(({ outcome_id }) => outcome_id));
  return html`<details class="compare"><summary class="button">Compare</summary>
<form method="get" data-compare data-most="${most}" data-standard="${JSON.stringify(standard.map(({ outcome_id }) => outcome_id))}">${hidden.map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  )}<fieldset class="checks"><legend>${most < MAX_LINES ? 'Beside this outcome' : 'Lines of the chart'}, at most ${most}</legend><div class="choices">${candidates.map(
    ({ outcome_id, label }) =>
      html`<label class="check"><input type="checkbox" name="compare" value="${outcome_id}"${
        ids.has(outcome_id) && html` checked`
      }>${cut(label, MAX_LABEL)}</label>`,
  )}</div></fieldset><button type="submit">Show</button></form></details>`;
}
