import { setTimeout as delay } from 'node:timers/promises';
import { choiceOf, present, UsageError } from '../../../../cli/arguments.ts';
import { utc } from '../../../../cli/table.ts';
import { DIRECTIONS, UNITS } from '../../../../src/domain/alerts/condition.ts';
import { CONDITIONS, conditionOf, thresholdField } from '../../../../src/domain/alerts/conditions.ts';
import { ORDER_SIDES } from '../../../../src/domain/markets/market.ts';
import { RESOLUTION_STATES, type ResolutionState } from '../../../../src/domain/markets/resolution.ts';
import type { Alert, AlertBacktest, AlertBacktestResult } from '../../../typescript/src/index.ts';
import type { Call, CliCommand } from '../command.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { CURSOR, FORMATS, futureMoment, moment, span, wholeNumber } from '../read-arguments.ts';
import { type Column, DEFAULT_LIMIT, printDeleted, printList, printOne, printRows } from '../rows.ts';

const DAY_SECONDS = 86_400;
const LOOK_EVERY_MS = 1_000;

type Firing = AlertBacktestResult['firings'][number];

const RESULT_COLUMNS: readonly Column<Firing>[] = [
  { name: 'at', of: ({ at }) => at, show: ({ at }) => utc(at) },
  { name: 'price', of: ({ price }) => price, isNumber: true },
  { name: 'from', of: ({ fromPrice }) => fromPrice, isNumber: true },
  { name: 'value', of: ({ value }) => value, isNumber: true },
  { name: 'status', of: ({ status }) => status },
  { name: 'market', of: ({ marketId }) => marketId, cutAt: 16 },
  { name: 'token', of: ({ tokenMint }) => tokenMint, cutAt: 24 },
];

type Body = Parameters<ReturnType<Call['client']>['alerts']['backtest']>[0];

/** Prints the firings of an alert between two moments. Waits for the job of a long range. */
async function backtestAlert(call: Call, alert: Body['alert']): Promise<number> {
  const nowMs = call.io.now();
  const end = moment(call, 'end', nowMs) ?? Math.floor(nowMs / 1_000);
  const start = moment(call, 'start', nowMs) ?? end - DAY_SECONDS;
  const { signal } = call.io;
  const answer = await call.client().alerts.backtest({ alert, start, end }, { signal });
  const result = 'id' in answer ? await resultOf(call, answer) : answer;
  await printRows(call, { rows: result.firings, columns: RESULT_COLUMNS, answer: result, none: 'no firing' });
  if (call.flags.has('json')) return EXIT.done;
  await call.note(`${result.firingCount} firings on ${result.observations} observations`);
  if (result.approximate) {
    const since = result.exactFrom === undefined ? 'for the whole range' : `before ${utc(result.exactFrom)} UTC`;
    await call.note(`approximate: price history replaces observations ${since}`);
  }
  for (const { start: from, end: until, cause, venue } of result.gaps) {
    await call.note(`gap: ${utc(from)} to ${utc(until)} UTC, ${venue}: ${cause}`);
  }
  return EXIT.done;
}

async function resultOf(call: Call, started: AlertBacktest): Promise<AlertBacktestResult> {
  const { signal } = call.io;
  for (let job = started; ; job = await call.client().alerts.getBacktest(job.id, { signal })) {
    if (job.result !== undefined) return job.result;
    if (job.error !== undefined) throw new CommandError(`${job.error.code}: ${job.error.message}`, EXIT.failed);
    await call.note(`backtest ${job.id}: ${job.state}, ${Math.round(job.progress * 100)} %`);
    await delay(LOOK_EVERY_MS, undefined, { signal });
  }
}

/** An alert as a body of `POST /v1/alerts`. @throws UsageError */
function alertOfJson(text: string): Body['alert'] {
  try {
    return JSON.parse(text) as Body['alert'];
  } catch {
    throw new UsageError(['the alert must be JSON, such as {"tokenMint": "…", "condition": "above", "price": 0.6}']);
  }
}

const DECIMAL = /^\d*\.?\d+$/;

const withoutThreshold = CONDITIONS.filter((condition) => thresholdField({ condition }) === null);

const COLUMNS: readonly Column<Alert>[] = [
  { name: 'id', of: ({ id }) => id },
  { name: 'status', of: ({ status }) => status },
  { name: 'condition', of: ({ condition }) => condition },
  { name: 'price', of: ({ price }) => price, isNumber: true },
  { name: 'currency', of: ({ currency }) => currency },
  { name: 'tracked', of: ({ tracked }) => tracked, show: ({ tracked }) => (tracked ? 'yes' : 'no') },
  { name: 'created', of: ({ createdAt }) => createdAt, show: ({ createdAt }) => utc(createdAt) },
  { name: 'triggered', of: ({ triggeredAt }) => triggeredAt, show: ({ triggeredAt }) => utc(triggeredAt) },
  { name: 'token', of: ({ tokenMint }) => tokenMint, cutAt: 24 },
];

export const alerts: CliCommand = {
  summary: 'Lists, creates, deletes and backtests alerts.',
  forms: [
    'alerts [list]',
    'alerts create OUTCOME CONDITION [THRESHOLD] [OPTIONS OF THE CONDITION] [--webhook ID]',
    'alerts create JSON [--webhook ID]',
    'alerts get ID',
    'alerts delete ID',
    'alerts backtest OUTCOME CONDITION [THRESHOLD] [OPTIONS OF THE CONDITION] [--start TIME] [--end TIME]',
    'alerts backtest JSON [--start TIME] [--end TIME]',
  ],
  verbs: ['list', 'create', 'get', 'delete', 'backtest'],
  options: {
    webhook: {
      value: 'ID',
      help: 'the webhook of a new alert, by default the oldest active one that lists price_alert',
    },
    direction: {
      value: 'D',
      choices: DIRECTIONS,
      help: 'of a spread or an order at_most or at_least, of a change up or down',
    },
    unit: { value: 'U', choices: UNITS, help: 'of a change, by default absolute' },
    window: { value: 'SPAN', help: 'the window of a change or a volume, such as 15m or 1h' },
    windows: { value: 'N', help: 'the windows for the mean; THRESHOLD of a volume is then a multiple of it' },
    states: { value: 'LIST', help: `the states of a result, a comma list of ${RESOLUTION_STATES.join(', ')}` },
    side: { value: 'S', choices: ORDER_SIDES, help: 'of an order that takes from the book' },
    size: { value: 'N', help: 'of an order: units of the outcome' },
    notional: { value: 'N', help: 'of an order, instead of --size: its cost without the fee' },
    sell: { value: 'OUTCOME', help: 'the outcome that net_difference sells' },
    repeat: { help: 'fires again after the cool-down' },
    cooldown: { value: 'SPAN', help: 'the least time between two firings, with --repeat' },
    expires: { value: 'TIME', help: 'the end of a new alert: a span from now, a date or a time' },
    name: { value: 'TEXT', help: 'the name of a new alert, which its events have' },
    limit: { value: 'N', help: `the number of listed alerts, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    start: { value: 'TIME', help: 'the start of a backtest, by default a day before its end' },
    end: { value: 'TIME', help: 'the end of a backtest, by default now' },
    ...FORMATS,
  },
  notes: `CONDITION is one of ${CONDITIONS.join(', ')}. THRESHOLD is a price, a spread, a move, an amount or a net per unit; ${withoutThreshold.join(' and ')} have none.
  JSON is a body of POST /v1/alerts, also with a scope. TIME is an age such as 24h, a date, ISO 8601 in UTC, or epoch seconds.`,
  words: [0, 4],
  ids: { words: 'outcome', options: { sell: 'outcome' } },
  async run(call) {
    const [verb = 'list', ...rest] = call.words;
    const { signal } = call.io;
    if (verb === 'list') {
      const { alerts: api } = call.client();
      return printList(call, { columns: COLUMNS, none: 'no alert' }, (place) => api.list(place, { signal }));
    }
    if (verb === 'create' || verb === 'backtest') {
      const [json = '', ...more] = rest;
      const isJson = json.startsWith('{') && more.length === 0;
      const alert = { ...(isJson ? alertOfJson(json) : newAlert(call, rest, verb)), ...givenFields(call) };
      if (verb === 'backtest') return backtestAlert(call, alert);
      return printOne(call, COLUMNS, await call.client().alerts.create(alert, { signal }));
    }
    const id = oneId(rest, `alerts ${verb}`);
    if (verb === 'get') return printOne(call, COLUMNS, await call.client().alerts.get(id, { signal }));
    await call.client().alerts.delete(id, { signal });
    return printDeleted(call, id);
  },
};

/** The one id behind a verb. @throws UsageError */
export function oneId(words: readonly string[], form: string): string {
  const [id] = words;
  if (id === undefined || words.length > 1) throw new UsageError([`${form} takes one id`]);
  return id;
}

type NewAlert = Parameters<ReturnType<Call['client']>['alerts']['create']>[0];

/** The alert of the words behind a verb. The API checks which fields belong together. @throws UsageError */
function newAlert(call: Call, [tokenMint, name, threshold, ...more]: readonly string[], verb: string): NewAlert {
  const condition = CONDITIONS.find((each) => each === name);
  const windows = wholeNumber(call, 'windows', [1, Number.MAX_SAFE_INTEGER]);
  const field = condition === undefined ? null : thresholdField({ condition, windows });
  const problems = [
    ...(tokenMint === undefined || more.length > 0 ? [`alerts ${verb} takes OUTCOME CONDITION [THRESHOLD]`] : []),
    ...(condition === undefined ? [`the condition must be one of ${CONDITIONS.join(', ')}`] : []),
    ...(condition !== undefined && field === null && threshold !== undefined ? [`${condition} has no threshold`] : []),
    ...(field !== null && !DECIMAL.test(threshold ?? '')
      ? [`the ${field === 'price' ? 'price' : 'threshold'} must be a decimal number such as 0.62`]
      : []),
  ];
  if (problems.length > 0 || tokenMint === undefined || condition === undefined) throw new UsageError(problems);
  const hasUnit = conditionOf(condition).required.includes('unit');
  return {
    tokenMint,
    condition,
    ...(field !== null && { [field]: Number(threshold) }),
    ...(windows !== undefined && { windows }),
    ...(hasUnit && { unit: 'absolute' as const }),
  };
}

/** The states of `--states`. @throws UsageError */
function statesOf({ texts }: Call): ResolutionState[] | undefined {
  const given = texts.get('states')?.split(',');
  const known = RESOLUTION_STATES.filter((state) => given?.includes(state));
  if (given?.some((state) => !known.includes(state as ResolutionState)))
    throw new UsageError([`--states takes a comma list of ${RESOLUTION_STATES.join(', ')}`]);
  return given && known;
}

/** The decimal number of an option. @throws UsageError */
function amountOf({ texts }: Call, name: 'size' | 'notional'): number | undefined {
  const text = texts.get(name);
  if (text === undefined) return undefined;
  if (!DECIMAL.test(text)) throw new UsageError([`--${name} must be a decimal number such as 500`]);
  return Number(text);
}

/** The options of a condition and of an alert. @throws UsageError */
function givenFields(call: Call): Partial<NewAlert> {
  const { texts, flags } = call;
  const direction = choiceOf(call, 'direction', DIRECTIONS);
  const unit = choiceOf(call, 'unit', UNITS);
  const windowSeconds = span(call, 'window');
  const cooldownSeconds = span(call, 'cooldown');
  const expires = futureMoment(call, 'expires', call.io.now());
  return {
    ...(flags.has('repeat') && { repeat: true }),
    ...present({
      direction,
      unit,
      windowSeconds,
      cooldownSeconds,
      states: statesOf(call),
      side: choiceOf(call, 'side', ORDER_SIDES),
      size: amountOf(call, 'size'),
      notional: amountOf(call, 'notional'),
      sellTokenMint: texts.get('sell'),
      expiresAt: expires === undefined ? undefined : new Date(expires * 1_000).toISOString(),
      name: texts.get('name'),
      webhookId: texts.get('webhook'),
    }),
  };
}
