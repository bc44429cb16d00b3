import { present, UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import { RESOLUTION_STATES } from '../../../../src/domain/markets/resolution.ts';
import type { Market, Resolution, ResolutionRow } from '../../../typescript/src/index.ts';
import type { CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { FORMATS, moment, VENUE } from '../read-arguments.ts';
import { type Column, DEFAULT_LIMIT, printFacts, printList, printRows, titleOf } from '../rows.ts';

type TimelineRow = Resolution<string>['timeline'][number];

/** The columns of a row of a timeline. `nameOf` names an outcome in its payouts. */
function rowColumns(nameOf: (outcomeId: string) => string): readonly Column<TimelineRow>[] {
  return [
    { name: 'received_at', of: (row) => row.received_at, show: (row) => utc(row.received_at) },
    { name: 'venue_time', of: (row) => row.at, show: (row) => utc(row.at) },
    { name: 'transition', of: ({ transition }) => transition },
    { name: 'state', of: ({ state }) => state },
    { name: 'round', of: ({ round }) => round, isNumber: true },
    { name: 'source', of: ({ source }) => source },
    {
      name: 'payouts',
      of: ({ payouts }) => payouts?.map(({ outcome_id: id, payout }) => `${nameOf(id)}=${payout}`).join(' '),
      cutAt: 40,
    },
    { name: 'reason', of: ({ reason }) => reason },
  ];
}

const LIST_COLUMNS: readonly Column<ResolutionRow<string>>[] = [
  ...rowColumns((outcomeId) => outcomeId),
  { name: 'venue', of: ({ venue }) => venue },
  { name: 'market_id', of: (row) => row.market_id },
];

export const resolution: CliCommand = {
  summary: 'Shows the result of a market with its payouts, and how it came about.',
  forms: ['resolution MARKET [--venue VENUE]'],
  options: { venue: VENUE, json: { help: 'prints the result and its timeline as JSON' } },
  words: [1, 1],
  ids: { words: 'market' },
  async run(call) {
    const { signal } = call.io;
    const asked = { market_id: call.words[0] ?? '', ...present({ venue: call.texts.get('venue') }) };
    const client = call.client();
    const { data } = await client.markets.resolution(asked, { signal });
    if (call.flags.has('json')) {
      await call.print(`${JSON.stringify(data, null, 2)}\n`);
      return EXIT.done;
    }
    const { data: market } = await client.markets.get({ ...asked, venue: data.venue }, { signal });
    await printFacts(call, [
      ['title', titleOf(market)],
      ['venue', data.venue],
      ['state', data.state],
      ['reason', data.reason],
    ]);
    const nameOf = labels(market);
    if (data.payouts !== null) {
      await printRows(call, {
        rows: data.payouts,
        columns: [
          { name: 'outcome', of: ({ outcome_id: id }) => nameOf(id) },
          { name: 'payout', of: ({ payout }) => payout, isNumber: true },
          { name: 'outcome_id', of: ({ outcome_id: id }) => id },
        ],
        answer: data,
        none: 'no payout',
      });
      await call.print('\n');
    }
    await printRows(call, { rows: data.timeline, columns: rowColumns(nameOf), answer: data, none: 'no timeline' });
    return EXIT.done;
  },
};

function labels({ outcomes }: Market<string>): (outcomeId: string) => string {
  const named = new Map(outcomes.map(({ outcome_id: id, label }) => [id, label]));
  return (outcomeId) => named.get(outcomeId) ?? outcomeId;
}

export const resolutions: CliCommand = {
  summary: 'Lists changes of the results of markets, in the order in which the service learned them.',
  forms: ['resolutions [--venue VENUE] [--state STATE] [--category NAME] [--since TIME] [--limit N]'],
  options: {
    venue: VENUE,
    state: { value: 'STATE', choices: RESOLUTION_STATES, help: 'only changes after which the result is in this state' },
    category: { value: 'NAME', help: "only this category, in the venue's spelling" },
    since: {
      value: 'TIME',
      help: 'learned since this time: an age such as 24h, a date, ISO 8601 in UTC, or epoch seconds',
    },
    limit: { value: 'N', help: `the number of changes, by default ${DEFAULT_LIMIT}` },
    cursor: {
      value: 'CURSOR',
      help: 'continues behind the last row of an earlier call, also later (meta.resume_cursor of --json)',
    },
    ...FORMATS,
  },
  words: [0, 0],
  async run(call) {
    const { texts } = call;
    const since = moment(call, 'since', call.io.now());
    if (since !== undefined && texts.has('cursor')) throw new UsageError(['choose --since or --cursor']);
    const state = RESOLUTION_STATES.find((each) => each === texts.get('state'));
    const filter = present({ venue: texts.get('venue'), state, category: texts.get('category') });
    const client = call.client();
    return printList(call, { columns: LIST_COLUMNS, none: 'no change of a result' }, (place) =>
      client.resolutions.list(
        { ...filter, ...(place.cursor === undefined && present({ since })), ...place },
        { signal: call.io.signal },
      ),
    );
  },
};
