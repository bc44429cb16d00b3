import { utc } from '../../../../cli/table.ts';
import type { Trade } from '../../../typescript/src/index.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR, FORMATS, moment, OUTCOME, RANGE, VENUE, wholeNumber } from '../read-arguments.ts';
import { type Column, MAX_ITEMS, noteHistory, printRows, readUpTo } from '../rows.ts';

const DEFAULT_LIMIT = 50;
const DIRECTIONS = ['asc', 'desc'] as const;

const COLUMNS: readonly Column<Trade<string>>[] = [
  { name: 'time', of: ({ timestamp }) => timestamp, show: ({ timestamp }) => utc(timestamp) },
  { name: 'side', of: ({ side }) => side },
  { name: 'price', of: ({ price }) => price, isNumber: true },
  { name: 'size', of: ({ size }) => size, isNumber: true },
  { name: 'outcome_id', of: ({ outcome_id: id }) => id, cutAt: 16 },
  { name: 'trade_id', of: ({ trade_id: id }) => id, cutAt: 16 },
];

export const trades: CliCommand = {
  summary: 'Prints the trades of a market, newest first.',
  forms: ['trades MARKET [--outcome ID] [--start TIME] [--end TIME] [--limit N]'],
  options: {
    venue: VENUE,
    outcome: OUTCOME,
    ...RANGE,
    direction: { value: 'ORDER', choices: DIRECTIONS, help: 'the order of time, by default desc' },
    limit: { value: 'N', help: `the number of trades, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    ...FORMATS,
  },
  words: [1, 1],
  ids: { words: 'market', options: { outcome: 'outcome' } },
  async run(call) {
    const { texts } = call;
    const [venue, outcome, direction] = [texts.get('venue'), texts.get('outcome'), texts.get('direction')];
    const [start, end] = [moment(call, 'start', call.io.now()), moment(call, 'end', call.io.now())];
    const client = call.client();
    const limit = wholeNumber(call, 'limit', [1, MAX_ITEMS]) ?? DEFAULT_LIMIT;
    const page = await readUpTo(limit, texts.get('cursor'), (place) =>
      client.trades.list(
        {
          market_id: call.words[0] ?? '',
          ...(venue !== undefined && { venue }),
          ...(outcome !== undefined && { outcome_id: outcome }),
          ...(direction !== undefined && { direction: direction as (typeof DIRECTIONS)[number] }),
          ...(start !== undefined && { start }),
          ...(end !== undefined && { end }),
          ...place,
        },
        { signal: call.io.signal },
      ),
    );
    const { red, green } = call.colours;
    await printRows(call, {
      rows: page.data,
      columns: COLUMNS,
      answer: page,
      none: 'no trade',
      colour: ({ side }) => (side === 'buy' ? green : side === 'sell' ? red : undefined),
    });
    await noteHistory(call, page.meta);
    return EXIT.done;
  },
};
