import { present } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import type { MarketFees } from '../../../typescript/src/index.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { FORMATS, moment, VENUE } from '../read-arguments.ts';
import { type Column, printRows } from '../rows.ts';

type Fees = MarketFees<string>;

interface Period {
  from: number | undefined;
  fee: Fees['fee'];
}

function curveOf({ fee }: Period) {
  return fee?.model === 'price_curve' ? fee : undefined;
}

const COLUMNS: readonly Column<Period>[] = [
  { name: 'from', of: ({ from }) => from, show: ({ from }) => utc(from) },
  { name: 'model', of: ({ fee }) => fee?.model ?? 'unknown' },
  { name: 'taker_rate', of: (period) => curveOf(period)?.taker_rate, isNumber: true },
  { name: 'maker_rate', of: (period) => curveOf(period)?.maker_rate, isNumber: true },
  { name: 'exponent', of: (period) => curveOf(period)?.exponent, isNumber: true },
  {
    name: 'rounding',
    of: (period) => {
      const { digits, mode } = curveOf(period)?.rounding ?? {};
      return digits === undefined ? undefined : `${mode} to ${digits} digits`;
    },
  },
];

export const fees: CliCommand = {
  summary: 'Shows the fee of a market and its announced changes.',
  forms: ['fees MARKET [--as-of TIME]'],
  options: {
    venue: VENUE,
    'as-of': { value: 'TIME', help: 'the fee that applied and was known at this time' },
    ...FORMATS,
  },
  words: [1, 1],
  ids: { words: 'market' },
  async run(call) {
    const asked = { venue: call.texts.get('venue'), as_of: moment(call, 'as-of', call.io.now()) };
    const answer = await call
      .client()
      .markets.fees({ market_id: call.words[0] ?? '', ...present(asked) }, { signal: call.io.signal });
    const { fee, reason, valid_from, changes } = answer.data;
    const rows: Period[] = [
      { from: valid_from, fee },
      ...changes.map(({ at, fee: later }) => ({ from: at, fee: later })),
    ];
    await printRows(call, { rows, columns: COLUMNS, answer, none: 'no fee' });
    if (reason !== undefined && !call.flags.has('json') && !call.flags.has('csv'))
      await call.note(`the fee is not known: ${reason}`);
    return EXIT.done;
  },
};
