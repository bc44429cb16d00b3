import { choiceOf, present, UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import { DELIVERY_STATUSES } from '../../../../src/domain/webhooks/event.ts';
import type { Delivery } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR, FORMATS, moment } from '../read-arguments.ts';
import { type Column, DEFAULT_LIMIT, printList, printOne } from '../rows.ts';

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
    status: { value: 'STATUS', choices: DELIVERY_STATUSES, help: 'only deliveries in this state' },
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

function listDeliveries(call: Call, webhook: string, since: number | undefined): Promise<number> {
  const client = call.client();
  const filter = present({
    status: choiceOf(call, 'status', DELIVERY_STATUSES),
    since: since === undefined ? undefined : new Date(since * 1_000),
  });
  const { green, red, yellow } = call.colours;
  const colours = { delivered: green, failed: red, pending: yellow, cancelled: undefined };
  return printList(call, { columns: COLUMNS, none: 'no delivery', colour: (row) => colours[row.status] }, (place) =>
    client.deliveries.list(webhook, { ...filter, ...place }, { signal: call.io.signal }),
  );
}

export function printDelivery(call: Call, delivery: Delivery): Promise<number> {
  return printOne(call, COLUMNS, delivery);
}
