import { present } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { FORMATS, moment, VENUE } from '../read-arguments.ts';
import { type Column, printRows } from '../rows.ts';

/** The API takes this many ids in a request. */
const MAX_IDS = 100;

interface Row {
  market_id: string;
  as_of: number;
  outcome_id: string;
  price?: string;
  probability?: number;
  best_bid?: string;
  best_ask?: string;
}

const COLUMNS: readonly Column<Row>[] = [
  { name: 'market_id', of: (row) => row.market_id },
  { name: 'as_of', of: (row) => row.as_of, show: (row) => utc(row.as_of) },
  { name: 'price', of: (row) => row.price, isNumber: true },
  { name: 'bid', of: (row) => row.best_bid, isNumber: true },
  { name: 'ask', of: (row) => row.best_ask, isNumber: true },
  { name: 'outcome_id', of: (row) => row.outcome_id },
];

export const prices: CliCommand = {
  summary: 'Prints the prices of the outcomes of markets.',
  forms: ['prices MARKET… [--venue VENUE] [--as-of TIME]'],
  options: {
    venue: VENUE,
    'as-of': {
      value: 'TIME',
      help: 'the prices that were known at this time: an age such as 24h, a date, ISO 8601, or epoch seconds',
    },
    ...FORMATS,
  },
  words: [1, MAX_IDS],
  ids: { words: 'market' },
  notes: 'Exit code 4 means that a market is unknown or has no price; the prices of the others are printed.',
  async run(call) {
    const answer = await call.client().markets.manyPrices(
      {
        market_ids: call.words,
        ...present({ venue: call.texts.get('venue'), as_of: moment(call, 'as-of', call.io.now()) }),
      },
      { signal: call.io.signal },
    );
    const rows = answer.data.flatMap(({ market_id, as_of, outcomes }) =>
      outcomes.map((outcome) => ({ market_id, as_of, ...outcome })),
    );
    await printRows(call, { rows, columns: COLUMNS, answer, none: 'no price' });
    const { missing } = answer.meta;
    if (missing.length > 0) await call.note(`no price, or no such market: ${missing.join(', ')}`);
    return missing.length > 0 ? EXIT.notFound : EXIT.done;
  },
};
