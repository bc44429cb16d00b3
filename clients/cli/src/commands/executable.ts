import { present, UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import { ORDER_SIDES } from '../../../../src/domain/markets/market.ts';
import { printable } from '../../../../src/domain/values/text.ts';
import type { Executable, PlacedExecutable } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { FORMATS, moment, OUTCOME, VENUE } from '../read-arguments.ts';
import { type Column, printRows } from '../rows.ts';

const COLUMNS: readonly Column<Executable<string>>[] = [
  { name: 'side', of: ({ side }) => side },
  { name: 'filled', of: ({ filled_size }) => filled_size, isNumber: true },
  { name: 'average', of: ({ average_price }) => average_price, isNumber: true },
  { name: 'worst', of: ({ worst_price }) => worst_price, isNumber: true },
  { name: 'levels', of: ({ levels }) => levels, isNumber: true },
  { name: 'notional', of: ({ filled_notional }) => filled_notional, isNumber: true },
  { name: 'fee', of: ({ fee }) => fee, isNumber: true },
  { name: 'total', of: ({ total }) => total, isNumber: true },
  { name: 'with_fee', of: ({ price_with_fee }) => price_with_fee, isNumber: true },
  { name: 'slippage', of: ({ slippage }) => slippage, isNumber: true },
];

/** What a reader of a fill must know besides its numbers. */
function remarks(fill: Executable<string>, { live, observed_at }: { live?: boolean; observed_at?: number }): string[] {
  const missing = fill.missing_size ?? fill.missing_notional;
  return [
    ...(fill.fee_reason === undefined ? [] : [`the fee is not known: ${fill.fee_reason}`]),
    ...(fill.complete
      ? []
      : [missing === undefined ? 'the stored levels end: the venue may have more' : `the book lacks ${missing}`]),
    ...(fill.crossed ? ['the book is crossed'] : []),
    ...(live === false
      ? [`the book is not live${observed_at === undefined ? '' : `: seen last at ${utc(observed_at)} UTC`}`]
      : []),
  ];
}

async function noteAll(call: Call, lines: readonly string[]): Promise<void> {
  if (call.flags.has('json') || call.flags.has('csv')) return;
  for (const line of lines) await call.note(line);
}

export const executable: CliCommand = {
  summary: 'Shows the cost or the proceeds of an order on one outcome, with the fee.',
  forms: ['executable MARKET --side SIDE --size N [--outcome ID]', 'executable MARKET --side SIDE --notional N'],
  options: {
    venue: VENUE,
    outcome: { ...OUTCOME, help: 'the outcome, by default the first of the market' },
    side: { value: 'SIDE', choices: ORDER_SIDES, help: 'buy takes asks, sell takes bids' },
    size: { value: 'N', help: 'units of the outcome' },
    notional: { value: 'N', help: 'in place of --size: price times size, without the fee' },
    'as-of': { value: 'TIME', help: 'the book and the fee that were known at this time' },
    ...FORMATS,
  },
  words: [1, 1],
  ids: { words: 'market', options: { outcome: 'outcome' } },
  async run(call) {
    const { texts } = call;
    const side = ORDER_SIDES.find((each) => each === texts.get('side'));
    if (side === undefined) throw new UsageError(['--side is required: buy or sell']);
    if (texts.has('size') === texts.has('notional')) throw new UsageError(['name --size or --notional']);
    const answer = await call.client().markets.executable(
      {
        market_id: call.words[0] ?? '',
        side,
        ...present({
          venue: texts.get('venue'),
          outcome_id: texts.get('outcome'),
          size: texts.get('size'),
          notional: texts.get('notional'),
          as_of: moment(call, 'as-of', call.io.now()),
        }),
      },
      { signal: call.io.signal },
    );
    const { data, meta } = answer;
    await printRows(call, { rows: [data], columns: COLUMNS, answer, none: '' });
    const of = `outcome ${printable(data.outcome_id)}, book as of ${utc(data.as_of)} UTC`;
    await noteAll(call, [of, ...remarks(data, present({ live: meta.live, observed_at: meta.observed_at }))]);
    return EXIT.done;
  },
};

const PLACED: readonly Column<PlacedExecutable<string>>[] = [
  { name: 'venue', of: ({ venue }) => venue },
  ...COLUMNS,
  { name: 'as_of', of: (fill) => fill.as_of, show: (fill) => utc(fill.as_of) },
];

export const compare: CliCommand = {
  summary: 'Compares a purchase of one outcome and a sale of as many units of another, with fees.',
  forms: ['compare BUY_OUTCOME SELL_OUTCOME --size N [--buy-venue VENUE] [--sell-venue VENUE]'],
  options: {
    'buy-venue': { value: 'VENUE', help: 'the venue of BUY_OUTCOME; by default any' },
    'sell-venue': { value: 'VENUE', help: 'the venue of SELL_OUTCOME; by default any' },
    size: { value: 'N', help: 'units of each outcome' },
    'as-of': { value: 'TIME', help: 'the books and fees that were known at this time' },
    ...FORMATS,
  },
  words: [2, 2],
  ids: { words: 'outcome' },
  notes: 'Whether the two outcomes mean the same is not checked.',
  async run(call) {
    const { texts, words } = call;
    const size = texts.get('size');
    if (size === undefined) throw new UsageError(['--size is required']);
    const answer = await call.client().markets.compare(
      {
        buy_venue: texts.get('buy-venue') ?? 'all',
        buy_outcome_id: words[0] ?? '',
        sell_venue: texts.get('sell-venue') ?? 'all',
        sell_outcome_id: words[1] ?? '',
        size,
        ...present({ as_of: moment(call, 'as-of', call.io.now()) }),
      },
      { signal: call.io.signal },
    );
    const { buy, sell, net, net_per_unit, age_difference_seconds } = answer.data;
    await printRows(call, { rows: [buy, sell], columns: PLACED, answer, none: '' });
    await noteAll(call, [
      ...[buy, sell].flatMap((fill) => remarks(fill, fill).map((line) => `${fill.side}: ${line}`)),
      net === null
        ? 'no difference is known'
        : `net ${net}, per unit ${net_per_unit}, books ${age_difference_seconds} s apart`,
    ]);
    return EXIT.done;
  },
};
