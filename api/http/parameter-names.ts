import type { z } from 'zod';
import { nearest } from '../../src/domain/values/nearest.ts';
import type { ApiContext } from '../context.ts';
import { type ErrorDetail, invalidRequest } from '../errors.ts';

/**
 * The operations of releases that ignored a query parameter that no route knows. They warn about it in two releases, and then refuse it
 * as every other operation does: the list and the warnings go (docs/api.md, "Unknown query parameters").
 */
export const TOLERANT_OPERATIONS: ReadonlySet<string> = new Set([
  'backtestAlert',
  'createAlert',
  'createAlerts',
  'createKey',
  'createWallet',
  'createWebhook',
  'deleteAlert',
  'deleteAlerts',
  'deleteWallet',
  'deleteWebhook',
  'getAlert',
  'getBacktest',
  'getDelivery',
  'getEvent',
  'getKey',
  'getManyPrices',
  'getMarket',
  'getOrderbook',
  'getPrices',
  'getWallet',
  'getWebhook',
  'listAccountEvents',
  'listAlerts',
  'listCandles',
  'listDeliveries',
  'listEvents',
  'listKeys',
  'listMarkets',
  'listSnapshots',
  'listTrades',
  'listVenues',
  'listVolume',
  'listWallets',
  'listWebhooks',
  'recoverDeliveries',
  'retryDelivery',
  'revokeKey',
  'rotateWebhookSecret',
  'testWebhook',
  'updateAlert',
  'updateWebhook',
]);

/** The start of the deprecation (RFC 9745), and its page. */
const DEPRECATED = `@${Date.parse('2026-11-26T00:00:00Z') / 1_000}`;
const LINK = '</docs/read/api#unknown-query-parameters>; rel="deprecation"; type="text/html"';
const MAX_REPORTED = 20;
const MAX_NAME = 200;
/** Any shorter name is within two letters of a parameter. */
const MIN_MISSPELT = 3;

/**
 * The check of the names of query parameters. `known` holds the names of all routes. A parameter of another route is refused, because
 * this route would ignore it silently. A name that no route has is refused too, or by an operation of TOLERANT_OPERATIONS announced: by
 * headers, and by `ctx.state.warnings`. The check throws `invalid_request` with all faults.
 */
export function parameterCheck(
  { operationId, query }: { operationId: string; query?: z.ZodObject },
  known: ReadonlySet<string>,
): (ctx: ApiContext) => void {
  const names = Object.keys(query?.shape ?? {});
  const own = new Set(names);
  const isTolerant = TOLERANT_OPERATIONS.has(operationId);
  const foreign = `is not a parameter of this route, which takes ${names.length === 0 ? 'none' : names.join(', ')}`;
  return (ctx) => {
    if (ctx.querystring === '') return;
    const given = [...new Set(new URLSearchParams(ctx.querystring).keys())].filter((name) => !own.has(name));
    if (given.length === 0) return;
    const faults: ErrorDetail[] = [];
    const unknown: ErrorDetail[] = [];
    for (const name of given) {
      const path = name.slice(0, MAX_NAME);
      if (known.has(name)) faults.push({ path, message: foreign });
      else if (unknown.length < MAX_REPORTED) unknown.push({ path, message: unknownName(path, names, isTolerant) });
    }
    if (unknown.length > 0 && isTolerant) {
      ctx.state.warnings = unknown;
      if (!ctx.response.get('Deprecation')) ctx.set('Deprecation', DEPRECATED);
      ctx.append('Link', LINK);
    } else faults.push(...unknown);
    if (faults.length > 0) throw invalidRequest(faults);
  };
}

function unknownName(name: string, names: readonly string[], isTolerant: boolean): string {
  const meant = name.length < MIN_MISSPELT ? undefined : nearest(name, names);
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
  return isTolerant
    ? `is ignored: no route has this parameter, and a later release answers 400${hint}`
    : `is not a parameter of any route${hint}`;
}
