import { isBookCondition } from '../../src/domain/alerts/conditions.ts';
import { numberField } from '../../src/domain/values/api-json.ts';
import type { Decimal } from '../../src/domain/values/decimal.ts';
import { correctionFields } from '../../src/domain/webhooks/broadcast.ts';
import { isUnreachable, type NewAlert } from '../../src/store/alerts/alerts.ts';
import { type BacktestFiring, type BacktestResult, backtest } from '../../src/store/alerts/backtest/backtest.ts';
import {
  type BacktestError,
  createBacktest,
  findBacktest,
  MAX_OPEN_BACKTESTS,
  type StoredBacktest,
} from '../../src/store/alerts/backtest/jobs.ts';
import { ANSWER_LIMITS, AT_ONCE_LIMITS, type BacktestRequest } from '../../src/store/alerts/backtest/request.ts';
import { refuseOrder } from '../../src/store/alerts/books/order-outcomes.ts';
import { isKnownToAll } from '../../src/store/alerts/former-processes.ts';
import { scopeKeyOf } from '../../src/store/alerts/scopes.ts';
import { findTokens } from '../../src/store/catalog/tokens.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { findSubscription } from '../../src/store/deliveries/subscriptions.ts';
import type { Caller, RouteGroup } from '../context.ts';
import {
  type BacktestBody,
  type BacktestJobBody,
  type BacktestResultBody,
  backtestBody,
  backtestExample,
  backtestJob,
  backtestJobExample,
  backtestResult,
  backtestResultExample,
} from '../contract/backtest.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import type { WriteDeps } from '../http/deps.ts';
import { accountRoute, type Route, writeRoute } from '../http/route.ts';
import { refused, toNewAlert } from './alerts.ts';
import { marketVenues } from './market-scope.ts';

const tag = 'alerts';
const group: RouteGroup = { header: 'X-API-Key', scope: 'alerts' };
/** The clocks of a client and of this process may differ by this. */
const CLOCK_TOLERANCE_MS = 60_000;
/** Backtests that this process answers at once. Beyond them, and beyond one per account, backtests run as jobs. */
const MAX_ANSWERED = 4;

/** Backtests of alerts: docs/alerts.md. */
export function alertBacktestRoutes(deps: WriteDeps): Route[] {
  const answering = new Set<bigint>();
  return [
    writeRoute(
      {
        path: '/v1/alerts/backtest',
        operationId: 'backtestAlert',
        summary: 'Evaluate an alert over the past',
        description:
          'Answers with the firings of an alert that is created at `start` and evaluated until `end`. A long range, or a second backtest of the account at once, runs as a job and gives 202.',
        tag,
        group,
        body: { schema: backtestBody(marketVenues(deps)), example: backtestExample },
        answer: {
          description: 'The firings.',
          data: backtestResult,
          example: backtestResultExample,
          accepted: { description: 'A job runs the backtest.', data: backtestJob, example: backtestJobExample },
        },
        errors: ['webhook_not_found', 'quota_exceeded', 'different_currencies', 'backtest_needs_job'],
      },
      async (tx, { caller, body }) => {
        const request = await toRequest(tx, deps, caller, body);
        const { accountId } = caller;
        if (answering.size < MAX_ANSWERED && !answering.has(accountId)) {
          answering.add(accountId);
          try {
            const result = await backtest(tx, request, body.atOnce ? AT_ONCE_LIMITS : ANSWER_LIMITS);
            if (result !== null) return { data: presentResult(result) };
          } finally {
            answering.delete(accountId);
          }
        }
        if (body.atOnce) {
          throw new ApiError(
            'backtest_needs_job',
            'the backtest needs a job: send it without atOnce, or a shorter range',
          );
        }
        const stored = await createBacktest(tx, accountId, request);
        if (stored === null) {
          throw new ApiError(
            'quota_exceeded',
            `quota "backtests": this account may have at most ${MAX_OPEN_BACKTESTS} running backtests`,
          );
        }
        return {
          status: 202,
          data: presentJob(stored),
          location: `/v1/alerts/backtests/${stored.id}`,
          afterCommit: () => deps.producer.wake('run-backtest', { backtestPk: String(stored.pk) }),
        };
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/alerts/backtests/:backtest_id',
        operationId: 'getBacktest',
        summary: 'Read a backtest that runs as a job',
        description: 'State, progress and, at the end, the result. A backtest of another account is unknown.',
        tag,
        group,
        answer: { description: 'The backtest.', data: backtestJob, example: backtestJobExample },
      },
      async ({ caller, params }) => {
        const found = await findBacktest(deps.db, caller.accountId, params.backtest_id);
        if (!found) throw new ApiError('backtest_not_found', 'no such backtest');
        return { data: presentJob(found) };
      },
    ),
  ];
}

/** The backtest of a checked body, with the checks of a creation. */
async function toRequest(
  tx: Tx,
  { now }: Pick<WriteDeps, 'now'>,
  { accountId }: Caller,
  { alert, start: startMs, end: endMs }: BacktestBody,
): Promise<BacktestRequest> {
  if (endMs > now() + CLOCK_TOLERANCE_MS) {
    throw invalidRequest([{ path: 'end', message: 'must not be in the future' }]);
  }
  const request = toNewAlert(alert, Number.NEGATIVE_INFINITY);
  const expiresMs = request.expiresAt?.getTime();
  if (expiresMs !== undefined && expiresMs <= startMs) {
    throw invalidRequest([{ path: 'alert.expiresAt', message: 'must be after start' }]);
  }
  const scopeKey = await checkedScopeKey(tx, accountId, request);
  const { tokenMint, scope, condition, target, direction, unit, windowSeconds, windows, states, cooldownSeconds } =
    request;
  const { side, size, notional, sellTokenMint } = request;
  const fields = {
    tokenMint,
    scope,
    scopeKey,
    condition,
    direction,
    unit,
    windowSeconds,
    windows,
    states,
    ...{ side, size, notional, sellTokenMint },
    cooldownSeconds,
  };
  return { ...fields, threshold: target, startMs, endMs, expiresMs };
}

/** @throws ApiError for an alert that could not be created. */
async function checkedScopeKey(tx: Tx, accountId: bigint, request: NewAlert): Promise<string | null> {
  const { webhookId, tokenMint, scope, condition, target, sellTokenMint, size } = request;
  if (webhookId !== undefined) {
    const webhook = await findSubscription(tx, accountId, webhookId);
    if (!webhook) throw refused({ outcome: 'webhook_not_found' });
    if (!webhook.events.includes('price_alert')) throw ofAlert(refused({ outcome: 'webhook_not_listening' }));
  }
  const isOnBooks = isBookCondition(condition) && tokenMint !== undefined;
  const refusal = isOnBooks ? await refuseOrder(tx, { tokenMint, sellTokenMint, size }) : null;
  if (refusal) throw ofAlert(refused(refusal));
  if (!(await isKnownToAll(tx, condition))) throw refused({ outcome: 'not_known_to_all', condition });
  const tokenId = tokenMint === undefined ? null : ((await findTokens(tx, [tokenMint])).get(tokenMint) ?? null);
  // No price of an unknown token is stored, so any target is reachable.
  const isUnknown = tokenMint !== undefined && tokenId === null;
  if (!isUnknown && (await isUnreachable(tx, { tokenId, condition }, target))) {
    throw ofAlert(refused({ outcome: 'unreachable_target' }));
  }
  const scopeKey = scope === undefined ? null : await scopeKeyOf(tx, scope);
  if (scope !== undefined && scopeKey === null) throw ofAlert(refused({ outcome: 'empty_search' }));
  return scopeKey;
}

/** The same error with the paths of the body of a backtest. */
function ofAlert(error: ApiError): ApiError {
  const { details } = error;
  if (details.length === 0) return error;
  return invalidRequest(details.map(({ path, message }) => ({ path: `alert.${path}`, message })));
}

const isoOf = (ms: number) => new Date(ms).toISOString();
const optionalNumber = (value: Decimal | undefined) => (value === undefined ? undefined : numberField(value));

function presentResult(result: BacktestResult): BacktestResultBody {
  const { firings, corrections, fired, observations, gaps, isApproximate, exactFromMs } = result;
  return {
    firings: firings.map(presentFiring),
    corrections: corrections?.map(presentFiring),
    firingCount: fired,
    observations,
    gaps: gaps.map(({ fromMs, untilMs, ...rest }) => ({ start: isoOf(fromMs), end: isoOf(untilMs), ...rest })),
    approximate: isApproximate,
    exactFrom: exactFromMs === undefined ? undefined : isoOf(exactFromMs),
  };
}

function presentFiring({ atMs, n: _, price, fromPrice, value, corrected, ...rest }: BacktestFiring) {
  return {
    at: isoOf(atMs),
    ...rest,
    price: optionalNumber(price),
    fromPrice: optionalNumber(fromPrice),
    value: optionalNumber(value),
    ...(corrected && correctionFields(corrected)),
  };
}

const ERROR_TEXTS: Readonly<Record<BacktestError, string>> = {
  too_large:
    'the range has more observations or markets than a backtest evaluates; use a shorter range or a smaller scope',
  attempts_failed: 'every attempt failed',
};

function presentJob(stored: StoredBacktest): BacktestJobBody {
  const { id, state, progress, createdAt, finishedAt, result, error } = stored;
  return {
    id,
    state,
    progress,
    createdAt: createdAt.toISOString(),
    finishedAt: finishedAt?.toISOString(),
    result: result === null ? undefined : presentResult(result),
    error: error === null ? undefined : { code: error, message: ERROR_TEXTS[error] },
  };
}
