import { present } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import { printable } from '../../../../src/domain/values/text.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { FORMATS, moment, OUTCOME, VENUE, wholeNumber } from '../read-arguments.ts';
import { printRows } from '../rows.ts';

const DEFAULT_DEPTH = 10;
const MAX_DEPTH = 200;

export const book: CliCommand = {
  summary: 'Prints the order book of one outcome: asks from the highest, then bids.',
  forms: ['book MARKET [--outcome ID] [--depth N]'],
  options: {
    venue: VENUE,
    outcome: { ...OUTCOME, help: 'the outcome, by default the first of the market' },
    depth: { value: 'N', help: `levels per side, by default ${DEFAULT_DEPTH}` },
    'as-of': { value: 'TIME', help: 'the book that was known at this time' },
    ...FORMATS,
  },
  words: [1, 1],
  ids: { words: 'market', options: { outcome: 'outcome' } },
  async run(call) {
    const answer = await call.client().markets.orderbook(
      {
        market_id: call.words[0] ?? '',
        depth: wholeNumber(call, 'depth', [1, MAX_DEPTH]) ?? DEFAULT_DEPTH,
        ...present({
          venue: call.texts.get('venue'),
          outcome_id: call.texts.get('outcome'),
          as_of: moment(call, 'as-of', call.io.now()),
        }),
      },
      { signal: call.io.signal },
    );
    const { bids, asks, as_of, spread, outcome_id } = answer.data;
    const rows = [
      ...asks.toReversed().map((level) => ({ side: 'ask', ...level })),
      ...bids.map((level) => ({ side: 'bid', ...level })),
    ];
    const { red, green } = call.colours;
    await printRows(call, {
      rows,
      columns: [
        { name: 'side', of: ({ side }) => side },
        { name: 'price', of: ({ price }) => price, isNumber: true },
        { name: 'size', of: ({ size }) => size, isNumber: true },
        { name: 'orders', of: ({ count }) => count, isNumber: true },
      ],
      answer,
      none: 'the book is empty',
      colour: ({ side }) => (side === 'ask' ? red : green),
    });
    if (!call.flags.has('json') && !call.flags.has('csv'))
      await call.note(
        `outcome ${printable(outcome_id)}, as of ${utc(as_of)} UTC${spread === undefined ? '' : `, spread ${spread}`}`,
      );
    return EXIT.done;
  },
};
