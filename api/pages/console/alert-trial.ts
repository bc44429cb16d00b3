import { createHash } from 'node:crypto';
import { isMarketCondition } from '../../../src/domain/alerts/conditions.ts';
import { MAX_OPEN_BACKTESTS } from '../../../src/store/alerts/backtest/jobs.ts';
import { ApiError } from '../../errors.ts';
import { type ChartMark, lineChart } from '../kit/drawings.ts';
import { chosen } from '../kit/filters.ts';
import type { FormView } from '../kit/form-view.ts';
import { type Column, type Html, html, NONE, number, table, time } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { shortId } from '../kit/shown-values.ts';
import { newAlertBody } from './alert-fields.ts';
import { TRIAL_PATH } from './alert-picks/field.ts';
import { targetOf } from './alert-words.ts';
import {
  type Alert,
  type Backtest,
  type BacktestFiring,
  type BacktestGap,
  type BacktestResult,
  type Market,
  orNothing,
} from './answers.ts';
import { type Names, namesOf } from './named-outcomes.ts';
import type { ActionRequest, ConsoleRequest } from './route.ts';
import { type Point, RANGES, type Range, readSeries, windowOf } from './series.ts';
import { amount, marketPath, percent, plain, price, venueTitle } from './values.ts';

const RANGE_LABELS: Readonly<Record<Range, string>> = {
  '1h': 'the last hour',
  '6h': 'the last 6 hours',
  '1d': 'the last day',
  '1w': 'the last week',
  '1m': 'the last 30 days',
  all: 'since it opened, else 90 days',
};
const DEFAULT_RANGE: Range = '1w';
/** Rows of a page. The answer has up to 1,000 firings. */
const MAX_SHOWN = 200;
const MAX_GAPS = 10;
/** The colours of a chart. */
const MAX_LINES = 8;

/** The choice of the times over which an alert is tried. */
export function trialRange(view: FormView): Html {
  return view.choice({
    label: 'Past to try it on',
    name: 'over',
    value: DEFAULT_RANGE,
    options: RANGES.map((each) => [each, RANGE_LABELS[each]] as const),
  });
}

/** The times of a backtest, epoch seconds. */
interface Span {
  start: number;
  end: number;
}

/**
 * The firings that the alert of a form would have had, in words, on a chart and in a table. A large backtest runs as a job: then the
 * section has a button that reads its result.
 * @throws ApiError as the backtest, with the paths of the form
 */
export async function alertTrial(deps: Pick<PageDeps, 'db'>, request: ActionRequest): Promise<Html> {
  const { form, nowMs } = request;
  const alert = newAlertBody(form) as unknown as Alert;
  const over = chosen(form, 'over', RANGES) ?? DEFAULT_RANGE;
  const market = await marketOf(deps, request, alert);
  const window = windowOf(over, market ?? {}, nowMs);
  const asked = createHash('sha256')
    .update(`${over} ${JSON.stringify(alert)}`)
    .digest('base64url');
  const started = startedJob(form, asked);
  const span = started ?? { start: window.start, end: Math.floor(nowMs / 1_000) };
  const { data } = await request.api<Backtest>(
    started
      ? { operationId: 'getBacktest', params: { backtest_id: started.id } }
      : { operationId: 'backtestAlert', body: { alert, ...span } },
  );
  if ('id' in data && data.result === undefined) {
    const { id, progress, error } = data;
    if (error !== undefined) throw new ApiError('invalid_request', `${error.message}.`);
    return pendingSection(progress, [id, span.start, span.end, asked].join(' '));
  }
  const result = 'id' in data ? data.result : data;
  if (result === undefined) throw new TypeError('a finished backtest has a result');
  return shownResult(deps, request, { alert, market, result, span, window, isBrief: false });
}

/**
 * The firings of a form whose fields change: of its range, or of the longest shorter one that has few enough observations for an answer at
 * once. It starts no job, and a form that the backtest rejects has the reasons in words.
 */
export async function briefTrial(deps: Pick<PageDeps, 'db'>, request: ActionRequest): Promise<Html> {
  const { form, nowMs } = request;
  try {
    const alert = newAlertBody(form) as unknown as Alert;
    const market = await marketOf(deps, request, alert);
    const wanted = chosen(form, 'over', RANGES) ?? DEFAULT_RANGE;
    for (const over of [wanted, ...SHORTER.filter((each) => RANGES.indexOf(each) < RANGES.indexOf(wanted))]) {
      const window = windowOf(over, market ?? {}, nowMs);
      const span = { start: window.start, end: Math.floor(nowMs / 1_000) };
      const body = { alert, ...span, atOnce: true };
      const answer = await request.api<BacktestResult>({ operationId: 'backtestAlert', body }).catch(needsJob);
      if (answer === undefined) continue;
      const shown = { alert, market, result: answer.data, span, window };
      return await shownResult(deps, request, { ...shown, isBrief: true });
    }
    return section(
      html`<p class="note">No answer at once: the last hour has too many observations, or another backtest of the account runs.
<strong>Try it on the past</strong> runs a job.</p>`,
    );
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500 || error.status === 429) throw error;
    const details = atTrialFields(error).details.map(({ path, message }) => `${FIELD_WORDS[path] ?? path} ${message}`);
    const reasons = (details.length === 0 ? error.message : details.join('; ')).replaceAll(
      / with the condition \w+/g,
      '',
    );
    return section(html`<p class="muted">Not tried yet: ${reasons}.</p>`);
  }
}

const SHORTER: readonly Range[] = ['1w', '1d', '1h'];
const FIELD_WORDS: Readonly<Record<string, string>> = {
  tokenMint: 'the outcome',
  sellTokenMint: 'the outcome to sell',
  scope: 'the markets',
  notional: 'the amount',
  change: 'the move',
  price: 'the price',
  times: 'the multiple',
  states: 'the result',
  windowSeconds: 'the window',
  cooldownSeconds: 'the cool-down',
  expiresAt: 'the end',
  webhookId: 'the webhook',
};

/** Nothing for a backtest that is too large for an answer at once. */
function needsJob(error: unknown): undefined {
  if (error instanceof ApiError && error.code === 'backtest_needs_job') return undefined;
  throw error;
}

interface Shown {
  alert: Alert;
  market: Market | undefined;
  result: BacktestResult;
  span: Span;
  window: ReturnType<typeof windowOf>;
  /** Whether its table of firings is folded. */
  isBrief: boolean;
}

async function shownResult(deps: Pick<PageDeps, 'db'>, request: ConsoleRequest, shown: Shown): Promise<Html> {
  const { alert, market, result, isBrief, span } = shown;
  const names = await namesOf(deps, request, [
    ...(market?.outcomes.map(({ outcome_id }) => outcome_id) ?? []),
    ...result.firings.slice(0, MAX_SHOWN).map(({ tokenMint }) => tokenMint),
  ]);
  const chart = market && (await trialChart(request, { ...shown, market, names }));
  return resultSection(alert, result, { names, span, chart, isBrief });
}

/** The reasons of a rejected backtest with the names of the form. */
export function atTrialFields(error: ApiError): ApiError {
  if (error.code === 'quota_exceeded') {
    const words = `${MAX_OPEN_BACKTESTS} backtests of this account have not ended. Wait until one of them has, or choose a shorter time.`;
    return new ApiError(error.code, words);
  }
  const details = error.details.map(({ path, message }) => ({
    path: path === 'start' || path === 'end' ? 'over' : path.replace(/^alert\./, ''),
    message,
  }));
  return new ApiError(error.code as 'invalid_request', error.message, { details });
}

/** The job that the form names, when the other fields are those of its start. */
function startedJob(form: URLSearchParams, asked: string): (Span & { id: string }) | undefined {
  const [id = '', start, end, of] = (form.get('job') ?? '').split(' ');
  return of === asked ? { id, start: Number(start), end: Number(end) } : undefined;
}

/** The only market of an alert; undefined for several, for a token without one, and without the scope to read it. */
async function marketOf(
  deps: Pick<PageDeps, 'db'>,
  request: ConsoleRequest,
  alert: Alert,
): Promise<Market | undefined> {
  if (!request.session.caller.scopes.includes('markets:read')) return undefined;
  const { tokenMint, scope } = alert;
  const name = (await namesOf(deps, request, [tokenMint])).get(tokenMint ?? '');
  const { venue, marketId } = name ?? { venue: scope?.venue, marketId: scope?.market_id };
  if (venue === undefined || marketId === undefined) return undefined;
  const found = await orNothing(
    request.api<Market>({ operationId: 'getMarket', params: { venue, market_id: marketId } }),
  );
  return found?.data;
}

function pendingSection(progress: number, job: string): Html {
  return section(html`<p>The time has many observations, so a job evaluates it: ${Math.floor(progress * 100)} % is done. Nothing is saved.</p>
<p><button type="submit" name="job" value="${job}" formaction="${TRIAL_PATH}#trial" data-try>Show the result</button></p>`);
}

function section(content: Html): Html {
  return html`<section class="trial" id="trial" aria-labelledby="trial-title"><h2 id="trial-title">On the past</h2>${content}</section>`;
}

function resultSection(
  alert: Alert,
  { firings, firingCount, observations, gaps, approximate, exactFrom }: BacktestResult,
  { names, span, chart, isBrief }: { names: Names; span: Span; chart: Html | undefined; isBrief: boolean },
): Html {
  const shown = firings.slice(0, MAX_SHOWN);
  const fired =
    firingCount === 0
      ? 'It would not have fired'
      : `It would have fired ${({ 1: 'once', 2: 'twice' } as Record<number, string>)[firingCount] ?? `${firingCount.toLocaleString('en-US')} times`}`;
  const seen = isMarketCondition(alert.condition) ? 'changes of markets' : 'observations';
  const rows = firingTable(shown, names, alert.tokenMint === undefined);
  return section(html`<p><strong>${fired}</strong> from ${moment(span.start)} to ${moment(span.end)} UTC, on ${number(
    observations,
  )} ${seen}. Nothing is saved.</p>
${approximate && approximation(exactFrom)}
${gapList(gaps)}
${chart}
${
  firingCount > shown.length &&
  html`<p class="muted">The first ${shown.length} of ${number(firingCount)} firings. A longer cool-down or a shorter time has fewer.</p>`
}
${isBrief && shown.length > 0 ? html`<details class="more"><summary>The firings as a table</summary>${rows}</details>` : !isBrief && rows}`);
}

function firingTable(firings: readonly BacktestFiring[], names: Names, isOfSeveral: boolean): Html {
  const has = (name: keyof BacktestFiring) => firings.some((each) => each[name] !== undefined);
  const priceColumn = (field: 'price' | 'fromPrice', label: string): Column<BacktestFiring>[] =>
    has(field)
      ? [
          {
            label,
            isNumeric: true,
            // The price of an outcome is a probability, that of a Solana token an amount.
            cell: ({ [field]: value, tokenMint = '' }) =>
              names.has(tokenMint) ? (percent(value) ?? NONE) : price(value),
          },
        ]
      : [];
  return table<BacktestFiring>({
    caption: 'Firings on the past, oldest first',
    columns: [
      {
        label: 'Time (UTC)',
        // The script of a market page marks these on its chart.
        cell: ({ at, price: observed }) =>
          html`<span data-fired="${Math.floor(Date.parse(at) / 1_000)}" data-at="${observed === undefined ? '' : plain(observed)}">${time(new Date(at))}</span>`,
      },
      ...(isOfSeveral ? [{ label: 'Outcome', cell: (firing: BacktestFiring) => subject(firing, names) }] : []),
      ...priceColumn('price', 'Price'),
      ...priceColumn('fromPrice', 'Before'),
      ...(has('value')
        ? [{ label: 'Value', isNumeric: true, cell: ({ value }: BacktestFiring) => amount(value) }]
        : []),
      ...(has('status') ? [{ label: 'State', cell: ({ status }: BacktestFiring) => status ?? NONE }] : []),
    ],
    rows: firings,
    empty: 'No firing. Try another threshold or a longer time.',
  });
}

function subject({ tokenMint = '', venue, marketId }: BacktestFiring, names: Names): Html {
  const name = names.get(tokenMint);
  if (name !== undefined) {
    const path = marketPath({ venue: name.venue, market_id: name.marketId });
    return html`<a href="${path}">${name.title}</a> · ${name.label}`;
  }
  if (venue === undefined || marketId === undefined) return NONE;
  return html`<a href="${marketPath({ venue, market_id: marketId })}">market ${shortId(marketId)}</a>`;
}

function approximation(exactFrom: string | undefined): Html {
  const before = exactFrom === undefined ? 'of this time' : html`before ${time(new Date(exactFrom))} UTC`;
  return html`<p class="note">Approximate: the observations ${before} are no longer kept. The quotes of price history replace them, and trades and
volumes do not fire there.</p>`;
}

const CAUSES: Readonly<Record<string, string>> = {
  missing_trades: 'trades are missing, as the total of the venue shows',
  late_trades: 'trades arrived too late to be observed',
  polls_of_prices: 'prices cannot be read from the venue',
  polls_of_trades: 'trades cannot be read from the venue',
};

function gapList(gaps: readonly BacktestGap[]): Html {
  if (gaps.length === 0) return html`<p class="muted">No gap is known in this time.</p>`;
  const more = gaps.length - MAX_GAPS;
  return html`<details class="more"><summary>Observations may be missing in ${gaps.length === 1 ? 'one gap' : `${gaps.length} gaps`}</summary>
<ul>${gaps
    .slice(0, MAX_GAPS)
    .map(
      ({ start, end, cause, venue }) =>
        html`<li>${time(new Date(start))} to ${time(new Date(end))} UTC, ${venueTitle(venue)}: ${CAUSES[cause] ?? `gap of the feed (${cause.replaceAll('_', ' ')})`}</li>`,
    )}${more > 0 && html`<li>and ${more} more</li>`}</ul></details>`;
}

/** The line of each outcome of the alert with a mark at each firing. */
async function trialChart(
  request: ConsoleRequest,
  { market, alert, result, names, span, window }: Omit<Shown, 'market' | 'isBrief'> & { market: Market; names: Names },
): Promise<Html> {
  const outcomes = market.outcomes
    .filter(({ outcome_id }) => alert.tokenMint === undefined || outcome_id === alert.tokenMint)
    .slice(0, MAX_LINES);
  const lines = await Promise.all(
    outcomes.map(async ({ outcome_id }) => {
      const present = names.get(outcome_id)?.price ?? undefined;
      return (await readSeries(request, market, outcome_id, window, present)).line;
    }),
  );
  const marks = result.firings.slice(0, MAX_SHOWN).flatMap(({ at, price: observed, tokenMint }): ChartMark[] => {
    const line = tokenMint === undefined ? 0 : outcomes.findIndex(({ outcome_id }) => outcome_id === tokenMint);
    const x = Date.parse(at) / 1_000;
    const y = observed === undefined ? valueAt(lines[line] ?? [], x) : Number(observed);
    return y === undefined || line < 0
      ? []
      : [{ x, y, title: `${at.slice(0, 19).replace('T', ' ')} UTC, ${percent(y)}` }];
  });
  const target = targetOf(alert);
  const drawn = lines.map((line) => line.map(({ time: x, value: y }) => ({ x, y })));
  return html`<figure class="trial-chart"><div class="plot"><div class="scale" aria-hidden="true"><span>100 %</span><span>50 %</span><span>0 %</span></div>
${lineChart(drawn, `Price with ${marks.length} marks at the firings. The table below has them.`, {
  marks,
  span: [Math.min(span.start, window.start), span.end],
  level: target === undefined || target === null ? undefined : Number(target),
})}</div>
<p class="time-scale muted" aria-hidden="true"><span>${moment(span.start)}</span><span>${moment(span.end)}</span></p>
<ul class="chart-legend">${outcomes.map(
    ({ label }, index) => html`<li><span class="swatch series-${index}" aria-hidden="true"></span>${label}</li>`,
  )}<li><span class="swatch dot" aria-hidden="true"></span>would have fired</li></ul></figure>`;
}

/** The value of a line at a moment: that of the last point before it. */
function valueAt(line: readonly Point[], at: number): number | undefined {
  return (line.findLast(({ time: each }) => each <= at) ?? line[0])?.value;
}

/** A moment to the minute in UTC. */
function moment(seconds: number): Html {
  const iso = new Date(seconds * 1_000).toISOString();
  return html`<time class="num" datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 16)}</time>`;
}
