import { UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import { COVERAGE_KINDS, type CoverageClass, type CoverageKind } from '../../../../src/domain/markets/coverage.ts';
import type { CoverageHour } from '../../../typescript/src/index.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR, FORMATS, moment, wholeNumber } from '../read-arguments.ts';
import { type Column, MAX_ITEMS, printRows, readUpTo } from '../rows.ts';

/** The longest range of the API. */
const DEFAULT_LIMIT = 5_000;

const COLUMNS: readonly Column<CoverageHour<string>>[] = [
  { name: 'hour', of: ({ start }) => start, show: ({ start }) => utc(start).slice(0, 16) },
  { name: 'venue', of: ({ venue }) => venue },
  { name: 'class', of: (hour) => hour.class },
  { name: 'cause', of: ({ cause }) => cause },
  { name: 'reason', of: ({ reason }) => reason },
  { name: 'stored', of: ({ stored }) => stored, isNumber: true },
  { name: 'missing', of: ({ missing }) => missing, isNumber: true },
  { name: 'tolerance', of: ({ tolerance }) => tolerance, isNumber: true },
  { name: 'pause', of: ({ longest_pause: pause }) => pause, isNumber: true },
  { name: 'from', of: ({ from }) => from, show: ({ from }) => utc(from) },
  { name: 'to', of: ({ to }) => to, show: ({ to }) => utc(to) },
];

export const coverage: CliCommand = {
  summary: 'Prints for each hour whether the stored data is complete.',
  forms: ['coverage VENUE [--from TIME] [--to TIME] [--kind KIND] [--market ID]'],
  options: {
    from: { value: 'TIME', help: 'from this time: an age such as 24h, a date, ISO 8601 in UTC, or epoch seconds' },
    to: { value: 'TIME', help: 'until before this time; by default now' },
    kind: { value: 'KIND', choices: COVERAGE_KINDS, help: 'by default trades, which candles follow' },
    market: { value: 'ID', help: 'one market; by default the venue as a whole' },
    limit: { value: 'N', help: `the number of hours, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    ...FORMATS,
  },
  words: [1, 1],
  ids: { options: { market: 'market' } },
  notes: `VENUE is a venue such as kalshi, or all. Without --from it prints the last 300 hours; a range has at most 5,000. An hour is complete, quiet,
observed, gap (data is missing) or unknown (nothing is proven, with the reason). pause is the longest pause of polls in seconds.`,
  async run(call) {
    const { texts, io, words } = call;
    const [start, end] = [moment(call, 'from', io.now()), moment(call, 'to', io.now())];
    if (start !== undefined && end !== undefined && start >= end) throw new UsageError(['--from must be before --to']);
    const [kind, market] = [texts.get('kind') as CoverageKind | undefined, texts.get('market')];
    const client = call.client();
    const limit = wholeNumber(call, 'limit', [1, MAX_ITEMS]) ?? DEFAULT_LIMIT;
    const page = await readUpTo(limit, texts.get('cursor'), (place) =>
      client.coverage.list(
        {
          venue: words[0] ?? '',
          ...(kind !== undefined && { kind }),
          ...(market !== undefined && { market_id: market }),
          ...(start !== undefined && { start }),
          ...(end !== undefined && { end }),
          ...place,
        },
        { signal: io.signal },
      ),
    );
    const { red, yellow, green } = call.colours;
    const colours: Partial<Record<CoverageClass, typeof red>> = { gap: red, unknown: yellow, complete: green };
    await printRows(call, {
      rows: page.data,
      columns: COLUMNS,
      answer: page,
      none: 'no hour in the range',
      colour: (hour) => colours[hour.class],
    });
    const count = (wanted: CoverageClass) => page.data.filter((hour) => hour.class === wanted).length;
    if (page.data.length > 0) {
      await call.note(`${page.data.length} hours: ${count('gap')} with a gap, ${count('unknown')} unknown`);
    }
    return EXIT.done;
  },
};
