import { UsageError } from '../../../../cli/arguments.ts';
import { SUBSCRIBABLE_EVENTS } from '../../../../src/domain/webhooks/event.ts';
import type { Webhook, WebhookItem } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { CURSOR, FORMATS } from '../read-arguments.ts';
import { type Column, DEFAULT_LIMIT, printDeleted, printList, printOne } from '../rows.ts';
import { oneId } from './alerts.ts';
import { printDelivery } from './deliveries.ts';

/** The events of a new webhook. The others are many, or need a filter. */
const DEFAULT_EVENTS = ['price_alert', 'transaction', 'balance_change'] as const;

type EventType = (typeof SUBSCRIBABLE_EVENTS)[number];

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
      help: `a comma list of ${SUBSCRIBABLE_EVENTS.join(', ')}; by default ${DEFAULT_EVENTS.join(', ')}`,
    },
    secret: { value: 'SECRET', help: 'your own signing secret; by default oddswire makes one and prints it once' },
    type: {
      value: 'TYPE',
      choices: ['test', ...SUBSCRIBABLE_EVENTS],
      help: 'the type of the test event, by default test',
    },
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
    if (verb === 'list') {
      return printList(call, { columns: COLUMNS, none: 'no webhook' }, (place) =>
        client.webhooks.list(place, { signal }),
      );
    }
    if (verb === 'create') {
      const url = rest[0];
      if (url === undefined) throw new UsageError(['webhooks create takes a URL']);
      const made = await client.webhooks.create({ url, events: eventsOf(call), ...(secret && { secret }) }, { signal });
      return printWithSecret(call, made);
    }
    const id = oneId(rest, `webhooks ${verb}`);
    switch (verb) {
      case 'get':
        return printOne(call, COLUMNS, await client.webhooks.get(id, { signal }));
      case 'pause':
      case 'resume': {
        const status = verb === 'pause' ? 'paused' : 'active';
        return printOne(call, COLUMNS, await client.webhooks.update(id, { status }, { signal }));
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
        return printDeleted(call, id);
    }
  },
};

function eventsOf({ texts }: Call): EventType[] {
  const names = texts.get('events')?.split(',') ?? [...DEFAULT_EVENTS];
  const known = SUBSCRIBABLE_EVENTS.filter((type) => names.includes(type));
  if (known.length !== new Set(names).size)
    throw new UsageError([`--events must be a comma list of ${SUBSCRIBABLE_EVENTS.join(', ')}`]);
  return known;
}

/** Prints the secret too: no other answer has it. */
function printWithSecret(call: Call, webhook: Webhook & { secret: string }): Promise<number> {
  const columns: Column<Webhook & { secret: string }>[] = [...COLUMNS, { name: 'secret', of: ({ secret }) => secret }];
  return printOne(call, columns, webhook);
}
