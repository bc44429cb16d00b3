import { UsageError } from '../../../../cli/arguments.ts';
import type { Webhook, WebhookItem } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR, DEFAULT_EVENTS, EVENT_TYPES } from '../options.ts';
import { FORMATS, wholeNumber } from '../read-arguments.ts';
import { type Column, MAX_ITEMS, printRows, readUpTo } from '../rows.ts';
import { oneId } from './alerts.ts';
import { printDelivery } from './deliveries.ts';

const DEFAULT_LIMIT = 50;
type EventType = (typeof EVENT_TYPES)[number];

const COLUMNS: readonly Column<WebhookItem & Partial<Webhook>>[] = [
  { name: 'id', of: ({ id }) => id },
  {
    name: 'status',
    of: ({ status, pauseReason }) => (pauseReason === undefined ? status : `${status} (${pauseReason})`),
  },
  { name: 'events', of: ({ events }) => events.join(' ') },
  { name: 'url', of: ({ url }) => url },
];

export const webhooks: CliCommand = {
  summary: 'Lists, creates, tests, pauses and deletes webhooks.',
  forms: [
    'webhooks [list]',
    'webhooks create URL [--events TYPES] [--secret SECRET]',
    'webhooks get|pause|resume|delete ID',
    'webhooks test ID [--type TYPE]',
    'webhooks rotate-secret ID [--secret SECRET]',
  ],
  verbs: ['list', 'create', 'get', 'pause', 'resume', 'test', 'rotate-secret', 'delete'],
  options: {
    events: {
      value: 'TYPES',
      help: `a comma list of ${EVENT_TYPES.join(', ')}; by default ${DEFAULT_EVENTS.join(', ')}`,
    },
    secret: { value: 'SECRET', help: 'your own signing secret; by default oddswire makes one and prints it once' },
    type: { value: 'TYPE', choices: ['test', ...EVENT_TYPES], help: 'the type of the test event, by default test' },
    limit: { value: 'N', help: `the number of listed webhooks, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    ...FORMATS,
  },
  words: [0, 2],
  async run(call) {
    const [verb = 'list', ...rest] = call.words;
    const { signal } = call.io;
    const client = call.client();
    const secret = call.texts.get('secret');
    if (verb === 'list') return listWebhooks(call);
    if (verb === 'create') {
      const url = rest[0];
      if (url === undefined) throw new UsageError(['webhooks create takes a URL']);
      const made = await client.webhooks.create({ url, events: eventsOf(call), ...(secret && { secret }) }, { signal });
      return printWithSecret(call, made);
    }
    const id = oneId(rest, `webhooks ${verb}`);
    switch (verb) {
      case 'get':
        return printWebhook(call, await client.webhooks.get(id, { signal }));
      case 'pause':
      case 'resume': {
        const status = verb === 'pause' ? 'paused' : 'active';
        return printWebhook(call, await client.webhooks.update(id, { status }, { signal }));
      }
      case 'test': {
        const eventType = call.texts.get('type') as EventType | 'test' | undefined;
        return printDelivery(
          call,
          await client.webhooks.test(id, eventType === undefined ? {} : { eventType }, { signal }),
        );
      }
      case 'rotate-secret':
        return printWithSecret(call, await client.webhooks.rotateSecret(id, secret ? { secret } : {}, { signal }));
      default:
        await client.webhooks.delete(id, { signal });
        await call.print(call.flags.has('json') ? `${JSON.stringify({ id, deleted: true })}\n` : `${id} deleted\n`);
        return EXIT.done;
    }
  },
};

function eventsOf({ texts }: Call): EventType[] {
  const names = texts.get('events')?.split(',') ?? [...DEFAULT_EVENTS];
  const known = EVENT_TYPES.filter((type) => names.includes(type));
  if (known.length !== new Set(names).size)
    throw new UsageError([`--events must be a comma list of ${EVENT_TYPES.join(', ')}`]);
  return known;
}

async function listWebhooks(call: Call): Promise<number> {
  const client = call.client();
  const limit = wholeNumber(call, 'limit', [1, MAX_ITEMS]) ?? DEFAULT_LIMIT;
  const page = await readUpTo(limit, call.texts.get('cursor'), (place) =>
    client.webhooks.list(place, { signal: call.io.signal }),
  );
  await printRows(call, { rows: page.data, columns: COLUMNS, answer: page, none: 'no webhook' });
  return EXIT.done;
}

async function printWebhook(call: Call, webhook: Webhook): Promise<number> {
  await printRows(call, { rows: [webhook], columns: COLUMNS, answer: webhook, none: '' });
  return EXIT.done;
}

/** Prints the secret too: no other answer has it. */
async function printWithSecret(call: Call, webhook: Webhook & { secret: string }): Promise<number> {
  const columns: Column<Webhook & { secret: string }>[] = [...COLUMNS, { name: 'secret', of: ({ secret }) => secret }];
  await printRows(call, { rows: [webhook], columns, answer: webhook, none: '' });
  return EXIT.done;
}
