import { UsageError } from '../../../../bin/cli/arguments.ts';
import type { Alert } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import { CURSOR } from '../options.ts';
import { FORMATS, wholeNumber } from '../read-arguments.ts';
import { type Column, MAX_ITEMS, printRows, readUpTo, utcOf } from '../rows.ts';
import { alertOfJson, backtestAlert } from './alert-backtest.ts';

const DEFAULT_LIMIT = 50;

const COLUMNS: readonly Column<Alert>[] = [
  { name: 'id', of: ({ id }) => id },
  { name: 'status', of: ({ status }) => status },
  { name: 'condition', of: ({ condition }) => condition },
  { name: 'price', of: ({ price }) => price, isNumber: true },
  { name: 'currency', of: ({ currency }) => currency },
  { name: 'tracked', of: ({ tracked }) => tracked, show: ({ tracked }) => (tracked ? 'yes' : 'no') },
  { name: 'created', of: ({ createdAt }) => createdAt, show: ({ createdAt }) => utcOf(createdAt) },
  { name: 'triggered', of: ({ triggeredAt }) => triggeredAt, show: ({ triggeredAt }) => utcOf(triggeredAt) },
  { name: 'token', of: ({ tokenMint }) => tokenMint, cutAt: 24 },
];

export const alerts: CliCommand = {
  summary: 'Lists, creates, deletes and backtests alerts.',
  forms: [
    'alerts [list]',
    'alerts create OUTCOME above|below PRICE [--webhook ID]',
    'alerts get ID',
    'alerts delete ID',
    'alerts backtest OUTCOME above|below PRICE [--start TIME] [--end TIME]',
    'alerts backtest JSON [--start TIME] [--end TIME]',
  ],
  verbs: ['list', 'create', 'get', 'delete', 'backtest'],
  options: {
    webhook: {
      value: 'ID',
      help: 'the webhook of a new alert, by default the oldest active one that lists price_alert',
    },
    limit: { value: 'N', help: `the number of listed alerts, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    start: { value: 'TIME', help: 'the start of a backtest, by default a day before its end' },
    end: { value: 'TIME', help: 'the end of a backtest, by default now' },
    ...FORMATS,
  },
  notes:
    'JSON is a body of POST /v1/alerts, with any condition. TIME is an age such as 24h, a date, ISO 8601 in UTC, or epoch seconds.',
  words: [0, 4],
  async run(call) {
    const [verb = 'list', ...rest] = call.words;
    const { signal } = call.io;
    if (verb === 'list') return listAlerts(call);
    if (verb === 'create') return printAlert(call, await call.client().alerts.create(newAlert(call, rest), { signal }));
    if (verb === 'backtest') {
      const [json = '', ...more] = rest;
      const isJson = json.startsWith('{') && more.length === 0;
      return backtestAlert(call, isJson ? alertOfJson(json) : newAlert(call, rest, 'backtest'));
    }
    const id = oneId(rest, `alerts ${verb}`);
    if (verb === 'get') return printAlert(call, await call.client().alerts.get(id, { signal }));
    await call.client().alerts.delete(id, { signal });
    await call.print(call.flags.has('json') ? `${JSON.stringify({ id, deleted: true })}\n` : `${id} deleted\n`);
    return EXIT.done;
  },
};

/** The one id behind a verb. @throws UsageError */
export function oneId(words: readonly string[], form: string): string {
  const [id] = words;
  if (id === undefined || words.length > 1) throw new UsageError([`${form} takes one id`]);
  return id;
}

async function listAlerts(call: Call): Promise<number> {
  const client = call.client();
  const limit = wholeNumber(call, 'limit', [1, MAX_ITEMS]) ?? DEFAULT_LIMIT;
  const page = await readUpTo(limit, call.texts.get('cursor'), (place) =>
    client.alerts.list(place, { signal: call.io.signal }),
  );
  await printRows(call, { rows: page.data, columns: COLUMNS, answer: page, none: 'no alert' });
  return EXIT.done;
}

async function printAlert(call: Call, alert: Alert): Promise<number> {
  await printRows(call, { rows: [alert], columns: COLUMNS, answer: alert, none: '' });
  return EXIT.done;
}

function newAlert(call: Call, [tokenMint, condition, price, ...more]: readonly string[], verb = 'create') {
  const problems = [
    ...(tokenMint === undefined || more.length > 0 ? [`alerts ${verb} takes OUTCOME above|below PRICE`] : []),
    ...(condition === 'above' || condition === 'below' ? [] : ['the condition must be above or below']),
    ...(price !== undefined && /^\d*\.?\d+$/.test(price) ? [] : ['the price must be a decimal number such as 0.62']),
  ];
  if (problems.length > 0 || tokenMint === undefined) throw new UsageError(problems);
  const webhookId = call.texts.get('webhook');
  return {
    tokenMint,
    condition: condition === 'above' ? ('above' as const) : ('below' as const),
    price: Number(price),
    ...(webhookId !== undefined && { webhookId }),
  };
}
