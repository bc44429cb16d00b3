import { UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import type { Delivery } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR } from '../options.ts';
import { FORMATS, moment, wholeNumber } from '../read-arguments.ts';
import { type Column, MAX_ITEMS, printRows, readUpTo } from '../rows.ts';

const DEFAULT_LIMIT = 50;
const STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
const VERBS = ['list', 'get', 'retry', 'recover'];

const COLUMNS: readonly Column<Delivery>[] = [
  { name: 'id', of: ({ id }) => id },
  { name: 'event', of: ({ eventType }) => eventType },
  { name: 'status', of: ({ status }) => status },
  { name: 'attempts', of: ({ attempts }) => attempts, isNumber: true },
  { name: 'last', of: ({ lastStatusCode, lastError }) => lastError ?? lastStatusCode },
  { name: 'created', of: ({ createdAt }) => createdAt, show: ({ createdAt }) => utc(createdAt) },
  { name: 'next_attempt', of: ({ nextAttemptAt }) => nextAttemptAt, show: ({ nextAttemptAt }) => utc(nextAttemptAt) },
];

export const deliveries: CliCommand = {
  summary: 'Lists the deliveries of a webhook, and sends them again.',
  forms: [
    'deliveries list WEBHOOK [--status STATUS] [--since TIME]',
    'deliveries get WEBHOOK DELIVERY',
    'deliveries retry WEBHOOK DELIVERY',
    'deliveries recover WEBHOOK --since TIME',
  ],
  verbs: VERBS,
  options: {
    status: { value: 'STATUS', choices: STATUSES, help: 'only deliveries in this state' },
    since: { value: 'TIME', help: 'since this time: an age such as 24h, a date, ISO 8601 in UTC, or epoch seconds' },
    limit: { value: 'N', help: `the number of listed deliveries, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    ...FORMATS,
  },
  words: [2, 3],
  async run(call) {
    const [verb = 'list', webhook = '', delivery] = call.words;
    const { signal } = call.io;
    const client = call.client();
    const since = moment(call, 'since', call.io.now());
    if ((verb === 'get' || verb === 'retry') !== (delivery !== undefined)) {
      throw new UsageError([`deliveries ${verb} takes ${delivery === undefined ? 'WEBHOOK DELIVERY' : 'one webhook'}`]);
    }
    if (verb === 'list') return listDeliveries(call, webhook, since);
    if (verb === 'recover') {
      if (since === undefined) throw new UsageError(['deliveries recover needs --since']);
      const answer = await client.deliveries.recover(webhook, { since: new Date(since * 1_000) }, { signal });
      await call.print(`${JSON.stringify(answer)}\n`);
      return EXIT.done;
    }
    if (verb === 'retry')
      return printDelivery(call, await client.deliveries.retry(webhook, delivery ?? '', { signal }));
    const found = await client.deliveries.get(webhook, delivery ?? '', { signal });
    // The log of the attempts does not fit a row.
    await call.print(`${JSON.stringify(found, null, 2)}\n`);
    return EXIT.done;
  },
};

async function listDeliveries(call: Call, webhook: string, since: number | undefined): Promise<number> {
  const client = call.client();
  const status = call.texts.get('status') as (typeof STATUSES)[number] | undefined;
  const limit = wholeNumber(call, 'limit', [1, MAX_ITEMS]) ?? DEFAULT_LIMIT;
  const page = await readUpTo(limit, call.texts.get('cursor'), (place) =>
    client.deliveries.list(
      webhook,
      { ...(status && { status }), ...(since !== undefined && { since: new Date(since * 1_000) }), ...place },
      { signal: call.io.signal },
    ),
  );
  const { green, red, yellow } = call.colours;
  await printRows(call, {
    rows: page.data,
    columns: COLUMNS,
    answer: page,
    none: 'no delivery',
    colour: (row) => ({ delivered: green, failed: red, pending: yellow, cancelled: undefined })[row.status],
  });
  return EXIT.done;
}

export async function printDelivery(call: Call, delivery: Delivery): Promise<number> {
  await printRows(call, { rows: [delivery], columns: COLUMNS, answer: delivery, none: '' });
  return EXIT.done;
}
