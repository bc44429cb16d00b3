import { present, UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import { printable } from '../../../../src/domain/values/text.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { moment, VENUE, wholeNumber } from '../read-arguments.ts';
import { printFacts, printRows } from '../rows.ts';

const MAX_VERSION = 1_000_000;

type Part = { op: 'equal' | 'insert' | 'delete'; text: string };

export const rules: CliCommand = {
  summary: 'Prints the rules of a market with their versions, or how two versions differ.',
  forms: ['rules MARKET [--venue VENUE] [--as-of TIME] [--from N --to N]'],
  options: {
    venue: VENUE,
    'as-of': { value: 'TIME', help: 'the rules that were known at this time' },
    from: { value: 'N', help: 'the number of the earlier version, with --to' },
    to: { value: 'N', help: 'the number of the later version, with --from' },
    json: { help: 'prints the rules and their versions as JSON' },
  },
  words: [1, 1],
  ids: { words: 'market' },
  async run(call) {
    const from = wholeNumber(call, 'from', [1, MAX_VERSION]);
    const to = wholeNumber(call, 'to', [1, MAX_VERSION]);
    if ((from === undefined) !== (to === undefined)) throw new UsageError(['give both --from and --to, or neither']);
    const { data } = await call.client().markets.rules(
      {
        market_id: call.words[0] ?? '',
        ...present({ venue: call.texts.get('venue'), as_of: moment(call, 'as-of', call.io.now()), from, to }),
      },
      { signal: call.io.signal },
    );
    if (call.flags.has('json')) {
      await call.print(`${JSON.stringify(data, null, 2)}\n`);
      return EXIT.done;
    }
    await printFacts(call, [
      ['version', String(data.version)],
      ['since', utc(data.since)],
      ['read_at', data.read_at === undefined ? undefined : utc(data.read_at)],
      ['source', data.settlement_source],
      ['hash', data.hash],
    ]);
    const { diff = [], settlement_source_diff: sources = [] } = data;
    const texts = diff.length > 0 ? [diff, sources].map(marked).filter((text) => text !== '') : [data.text];
    await call.print(`${texts.map((text) => printableLines(text)).join('\n')}\n\n`);
    await printRows(call, {
      rows: data.versions,
      columns: [
        { name: 'version', of: ({ version }) => version, isNumber: true },
        { name: 'since', of: ({ since }) => since, show: ({ since }) => utc(since) },
        { name: 'hash', of: ({ hash }) => hash },
      ],
      answer: data,
      none: 'no version',
    });
    return EXIT.done;
  },
};

/** Deleted words as `[-…-]` and inserted ones as `{+…+}`, like the words of git. */
function marked(parts: readonly Part[]): string {
  return parts
    .map(({ op, text }) => (op === 'equal' ? text : op === 'delete' ? `[-${text}-]` : `{+${text}+}`))
    .join('');
}

/** Rules have several lines, and come from the venue. */
function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n');
}
