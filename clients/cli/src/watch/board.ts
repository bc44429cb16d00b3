import type { Colours } from '../../../../cli/output.ts';
import { cut, pad, widthOf } from '../../../../cli/table.ts';
import {
  compareDecimals,
  type Decimal,
  parseDecimal,
  roundedText,
  subtractDecimals,
  ZERO,
} from '../../../../src/domain/values/decimal.ts';
import { printable } from '../../../../src/domain/values/text.ts';
import type { Market, StreamItem } from '../../../typescript/src/index.ts';
import type { Output } from '../io.ts';
import { questionOf } from '../rows.ts';

type Message = StreamItem<string>;

interface Quote {
  readonly venue: string;
  readonly marketId: string;
  readonly outcomeId: string;
  /** The event and the market in it. */
  question: string;
  label: string;
  price: string | undefined;
  bid: string | undefined;
  ask: string | undefined;
  /** The first price of this run. */
  first: string | undefined;
  lastTrade: string | undefined;
  changedMs: number | undefined;
}

/** Whether the table is complete. */
type Completeness =
  | { readonly kind: 'starting' }
  | { readonly kind: 'live'; readonly checkedAt: string; readonly unhealthy: readonly string[] }
  | { readonly kind: 'stale'; readonly reason: string; readonly since: string | undefined }
  | { readonly kind: 'silent'; readonly reason: string; readonly since: string | undefined };

const CHANGED_MS = 1_500;
const GAP = 2;
/** A narrow terminal shows the quotes of the book, and a wide one the last trade too, when the question keeps so many columns. */
const LEAST_QUESTION = 28;

interface BoardColumn {
  readonly name: string;
  readonly width: number;
  readonly isNumber?: boolean;
  text(quote: Quote, isFirstOfMarket: boolean): string;
}

const NUMBER = { width: 7, isNumber: true } as const;
/** Behind the venue, the question and the outcome. */
const FIGURES: readonly BoardColumn[] = [
  { name: 'PRICE', ...NUMBER, text: ({ price }) => price ?? '-' },
  { name: 'CHANGE', ...NUMBER, text: (quote) => changeText(quote) },
  { name: 'BID', ...NUMBER, text: ({ bid }) => bid ?? '' },
  { name: 'ASK', ...NUMBER, text: ({ ask }) => ask ?? '' },
  { name: 'LAST TRADE', width: 20, text: ({ lastTrade }) => lastTrade ?? '' },
];
/** The figures that are left out together where they do not fit. */
const SHOWN_FIGURES = [5, 4, 2];

type BoardMarket = Pick<Market<string>, 'venue' | 'market_id' | 'title' | 'event_title' | 'sibling_label' | 'outcomes'>;

/** The table of `watch`: the quotes of the outcomes, and the state of the stream. */
export class WatchBoard {
  readonly #quotes = new Map<string, Quote>();
  #state: Completeness = { kind: 'starting' };
  #checkedAt: string | undefined;
  #gaps = 0;
  #lastGap: string | undefined;

  constructor(markets: readonly BoardMarket[]) {
    for (const market of markets) this.#add(market);
  }

  /** Changes when the state of the stream changes; time does not count. */
  get stateKey(): string {
    const unhealthy = this.#state.kind === 'live' ? this.#state.unhealthy : [];
    return [this.#state.kind, this.#gaps, ...unhealthy].join(' ');
  }

  quote(outcomeId: string): Readonly<Quote> | undefined {
    return this.#quotes.get(outcomeId);
  }

  apply(message: Message, nowMs: number): void {
    switch (message.type) {
      case 'price':
        this.#setPrice(message.data, nowMs);
        break;
      case 'snapshot':
        for (const outcome of message.data.outcomes) this.#setPrice(outcome, nowMs);
        break;
      case 'trade': {
        const quote = this.#quotes.get(message.data.outcome_id);
        if (quote) quote.lastTrade = `${message.data.side ?? ''} ${message.data.size} @ ${message.data.price}`.trim();
        break;
      }
      case 'market':
        this.#add(message.data);
        break;
      case 'heartbeat':
        this.#checkedAt = message.data.checked_at;
        this.#state = {
          kind: 'live',
          checkedAt: message.data.checked_at,
          unhealthy: message.data.venues.filter(({ healthy }) => !healthy).map(({ venue }) => venue),
        };
        break;
      case 'stale':
        this.#state = { kind: 'stale', reason: message.data.reason, since: this.#checkedAt };
        break;
      case 'silent':
        this.#state = { kind: 'silent', reason: message.data.reason, since: message.data.checked_at };
        break;
      case 'gap':
        this.#gaps += 1;
        this.#lastGap = message.data.reason;
        break;
    }
  }

  /** The table for a terminal of this size, with a line break at the end of each line. */
  text(colours: Colours, { columns, rows }: Pick<Output, 'columns' | 'rows'>, nowMs: number): string {
    const visible = [...this.#quotes.values()].slice(0, Math.max(1, rows - 3));
    const shown = columnsOf(visible, columns);
    const lineOf = (cell: (column: BoardColumn) => string) =>
      shown
        .map((column) => pad(cut(cell(column), column.width), column.width, column.isNumber))
        .join(' '.repeat(GAP))
        .trimEnd();
    const head = lineOf(({ name }) => name);
    const lines = visible.map((quote, at) => {
      const before = visible[at - 1];
      const isFirstOfMarket = before?.marketId !== quote.marketId || before.venue !== quote.venue;
      const sign = compareDecimals(changeOf(quote), ZERO);
      const line = cut(
        lineOf((column) => column.text(quote, isFirstOfMarket)),
        columns,
      );
      const painted = sign > 0 ? colours.green(line) : sign < 0 ? colours.red(line) : line;
      return quote.changedMs !== undefined && nowMs - quote.changedMs < CHANGED_MS ? colours.bold(painted) : painted;
    });
    const status = this.#paint(colours)(cut(this.statusText(), columns));
    return `${[status, colours.dim(cut(head, columns)), ...lines].join('\n')}\n`;
  }

  /** One sentence about the completeness of the table. */
  statusText(): string {
    const gaps =
      this.#gaps === 0 ? '' : `; ${this.#gaps} gap${this.#gaps === 1 ? '' : 's'}, the last one: ${this.#lastGap}`;
    return `${this.#stateText()}${gaps}`;
  }

  #stateText(): string {
    const state = this.#state;
    const behind = (since: string | undefined) => (since === undefined ? '' : `; complete up to ${clock(since)} UTC`);
    switch (state.kind) {
      case 'starting':
        return 'CONNECTING';
      case 'live':
        return state.unhealthy.length === 0
          ? `LIVE, complete up to ${clock(state.checkedAt)} UTC`
          : `LIVE, but no answer from ${state.unhealthy.join(', ')}; complete up to ${clock(state.checkedAt)} UTC`;
      case 'stale':
        return `STALE (${state.reason})${behind(state.since)}`;
      case 'silent':
        return `SILENT (${state.reason}), connecting again${behind(state.since)}`;
    }
  }

  #paint({ green, yellow, red }: Colours): (text: string) => string {
    const state = this.#state;
    if (state.kind === 'silent' || state.kind === 'stale') return red;
    return state.kind === 'live' && state.unhealthy.length === 0 && this.#gaps === 0 ? green : yellow;
  }

  #add(market: BoardMarket): void {
    for (const { outcome_id: outcomeId, label } of market.outcomes) {
      const known = this.#quotes.get(outcomeId);
      const names = { question: printable(questionOf(market)), label: printable(label) };
      if (known !== undefined) Object.assign(known, names);
      else {
        this.#quotes.set(outcomeId, {
          ...names,
          venue: market.venue,
          marketId: market.market_id,
          outcomeId,
          price: undefined,
          bid: undefined,
          ask: undefined,
          first: undefined,
          lastTrade: undefined,
          changedMs: undefined,
        });
      }
    }
  }

  #setPrice(data: { outcome_id: string; price?: string; best_bid?: string; best_ask?: string }, nowMs: number): void {
    const quote = this.#quotes.get(data.outcome_id);
    if (quote === undefined) return;
    if (quote.price !== undefined && quote.price !== data.price) quote.changedMs = nowMs;
    quote.price = data.price;
    quote.bid = data.best_bid;
    quote.ask = data.best_ask;
    quote.first ??= data.price;
  }
}

/** The change of the price since the start. */
function changeOf({ price, first }: Readonly<Quote>): Decimal {
  const [now, before] = [parseDecimal(price), parseDecimal(first)];
  return now === null || before === null ? ZERO : subtractDecimals(now, before);
}

function changeText(quote: Readonly<Quote>): string {
  const change = changeOf(quote);
  const sign = compareDecimals(change, ZERO);
  return sign === 0 ? '' : `${sign > 0 ? '+' : ''}${roundedText(change, 3)}`;
}

/** The columns that a terminal of this width shows; the question takes the rest of it. */
function columnsOf(quotes: readonly Quote[], width: number): BoardColumn[] {
  const widest = (most: number, name: string, texts: readonly string[]) =>
    Math.min(most, Math.max(...[name, ...texts].map(widthOf)));
  const venue: BoardColumn = {
    name: 'VENUE',
    width: widest(
      12,
      'VENUE',
      quotes.map((quote) => quote.venue),
    ),
    text: (quote, isFirst) => (isFirst ? quote.venue : ''),
  };
  const outcome: BoardColumn = {
    name: 'OUTCOME',
    width: widest(
      14,
      'OUTCOME',
      quotes.map(({ label }) => label),
    ),
    text: ({ label }) => label,
  };
  const restWith = (count: number) =>
    FIGURES.slice(0, count).reduce(
      (rest, figure) => rest - figure.width - GAP,
      width - venue.width - outcome.width - 2 * GAP,
    );
  const count = SHOWN_FIGURES.find((each) => restWith(each) >= LEAST_QUESTION) ?? 2;
  const question: BoardColumn = {
    name: 'EVENT',
    width: Math.max(1, restWith(count)),
    text: (quote, isFirst) => (isFirst ? quote.question : ''),
  };
  return [venue, question, outcome, ...FIGURES.slice(0, count)];
}

function clock(isoTime: string): string {
  return isoTime.slice(11, 19);
}
