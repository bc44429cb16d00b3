import { choiceOf, present } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import type { Candle } from '../../../typescript/src/index.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { FORMATS, moment, OUTCOME, RANGE, VENUE } from '../read-arguments.ts';
import { type Column, noteHistory, printRows } from '../rows.ts';

const INTERVALS = ['1m', '5m', '15m', '1h', '4h', '1d'] as const;
const FILLS = ['none', 'previous'] as const;

const COLUMNS: readonly Column<Candle<string>>[] = [
  { name: 'time', of: ({ timestamp }) => timestamp, show: ({ timestamp }) => utc(timestamp).slice(0, 16) },
  { name: 'open', of: ({ open }) => open, isNumber: true },
  { name: 'high', of: ({ high }) => high, isNumber: true },
  { name: 'low', of: ({ low }) => low, isNumber: true },
  { name: 'close', of: ({ close }) => close, isNumber: true },
  { name: 'volume', of: ({ volume }) => volume, isNumber: true },
  { name: 'notional', of: ({ notional }) => notional, isNumber: true },
  { name: 'trades', of: (row) => row.trades, isNumber: true },
  { name: 'closed', of: ({ closed }) => closed, show: ({ closed }) => (closed ? '' : 'open') },
];

export const candles: CliCommand = {
  summary: 'Prints candles of one outcome of a market.',
  forms: ['candles MARKET [--interval INTERVAL] [--outcome ID] [--start TIME] [--end TIME]'],
  options: {
    venue: VENUE,
    interval: { value: 'INTERVAL', choices: INTERVALS, help: 'the length of a candle, by default 1h' },
    outcome: { ...OUTCOME, help: 'the outcome, by default the first of the market' },
    ...RANGE,
    fill: { value: 'HOW', choices: FILLS, help: 'buckets without trades' },
    ...FORMATS,
  },
  words: [1, 1],
  ids: { words: 'market', options: { outcome: 'outcome' } },
  async run(call) {
    const { texts } = call;
    const answer = await call.client().candles.list(
      {
        market_id: call.words[0] ?? '',
        interval: choiceOf(call, 'interval', INTERVALS) ?? '1h',
        ...present({
          venue: texts.get('venue'),
          outcome_id: texts.get('outcome'),
          fill: choiceOf(call, 'fill', FILLS),
          start: moment(call, 'start', call.io.now()),
          end: moment(call, 'end', call.io.now()),
        }),
      },
      { signal: call.io.signal },
    );
    await printRows(call, { rows: answer.data, columns: COLUMNS, answer, none: 'no candle in this range' });
    await noteHistory(call, answer.meta);
    return EXIT.done;
  },
};
