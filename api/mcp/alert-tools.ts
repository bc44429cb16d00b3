import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import { ALERT_STATUSES, DIRECTIONS, UNITS } from '../../src/domain/alerts/condition.ts';
import { CONDITIONS, type Condition, conditionOf, isOfNewMarkets } from '../../src/domain/alerts/conditions.ts';
import { ORDER_SIDES } from '../../src/domain/markets/market.ts';
import { RESOLUTION_STATES } from '../../src/domain/markets/resolution.ts';
import { type RouteCalls, toolResult } from './tool-result.ts';

const MAX_FIRINGS = 100;
const MAX_ALERTS = 100;
const DEFAULT_ALERTS = 20;

/** The tools of price alerts, for keys with the scope `alerts`. */
export function addAlertTools(server: McpServer, calls: RouteCalls): void {
  server.registerTool(
    'list_alerts',
    {
      title: 'List price alerts',
      description: "The account's price alerts, newest first.",
      inputSchema: z.strictObject({
        status: z.enum(ALERT_STATUSES).optional(),
        outcome_id: z.string().optional().describe('Only alerts of this outcome or token.'),
        limit: z.number().int().min(1).max(MAX_ALERTS).default(DEFAULT_ALERTS),
        cursor: z.string().optional().describe('next_cursor of the previous page.'),
      }),
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    ({ outcome_id: tokenMint, ...filter }) =>
      toolResult(calls, async () => {
        const { data, meta } = await calls.get('/v1/alerts', { ...filter, tokenMint });
        return { alerts: data, next_cursor: meta['next_cursor'] ?? null };
      }),
  );

  server.registerTool(
    'create_alert',
    {
      title: 'Create an alert',
      description: `Creates an alert on an outcome, or with a scope on all outcomes of markets. It fires once, or with repeat again after a cool-down; touching a threshold counts. The event goes to a webhook of the account and to the account's stream of events. Conditions with their fields: ${CONDITIONS.map(
        conditionText,
      ).join('; ')}.`,
      inputSchema: z.strictObject({
        outcome_id: z
          .string()
          .min(1)
          .optional()
          .describe('outcome_id of a market, or another token; absent with a scope.'),
        scope: z
          .strictObject({
            market_id: z.string().optional(),
            event_id: z.string().optional(),
            venue: z.string().optional(),
            category: z.string().optional(),
            q: z.string().optional().describe('Each word is in the title of the market or of its event.'),
          })
          .optional()
          .describe('The markets of an alert without outcome_id. All given fields must fit, also for later markets.'),
        condition: z.enum(CONDITIONS),
        price: amount(
          'The target price, of an outcome at most 1; the spread; the price with fee of an order; or the net per unit.',
        ),
        change: amount('The least move.'),
        unit: z.enum(UNITS).optional().describe('Of the move: of the price, or percent of the earlier price.'),
        direction: z
          .enum(DIRECTIONS)
          .optional()
          .describe('Of a spread or the price of an order: at_most, at_least. Of a change: up, down; absent for both.'),
        notional: amount('Price times size, in the currency of the outcome. Of an order, instead of size.'),
        times: amount('A multiple of the mean of the windows before.'),
        windows: z.number().int().positive().optional().describe('The number of windows for the mean.'),
        states: z
          .array(z.enum(RESOLUTION_STATES))
          .optional()
          .describe('The states of the result that fire the condition resolution.'),
        side: z.enum(ORDER_SIDES).optional().describe('Of an order that takes from the book.'),
        size: amount('Of an order: units of the outcome.'),
        sell_outcome_id: z.string().min(1).optional().describe('The outcome that net_difference sells.'),
        window_seconds: z.number().int().positive().optional(),
        repeat: z.boolean().optional().describe('Fires again after cooldown_seconds.'),
        cooldown_seconds: z.number().int().positive().optional(),
        expires_at: z.string().optional().describe('ISO 8601 with an offset: observations from then on do not count.'),
        name: z.string().optional().describe('The event has it.'),
        webhook_id: z.string().optional().describe('Default: the oldest active webhook that lists price_alert.'),
      }),
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    },
    ({ outcome_id: tokenMint, sell_outcome_id, window_seconds, cooldown_seconds, expires_at, webhook_id, ...fields }) =>
      toolResult(calls, async () => {
        const { data } = await calls.post('/v1/alerts', {
          ...fields,
          tokenMint,
          sellTokenMint: sell_outcome_id,
          windowSeconds: window_seconds,
          cooldownSeconds: cooldown_seconds,
          expiresAt: expires_at,
          webhookId: webhook_id,
        });
        return { alert: data };
      }),
  );

  server.registerTool(
    'delete_alert',
    {
      title: 'Delete an alert',
      description: 'Deletes an alert of the account. It does not fire any more; events that it has sent stay.',
      inputSchema: z.strictObject({ alert_id: z.string().min(1).describe('id of an alert of list_alerts.') }),
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    },
    ({ alert_id: id }) =>
      toolResult(calls, async () => {
        const { data } = await calls.delete(`/v1/alerts/${encodeURIComponent(id)}`);
        return { alert: data };
      }),
  );

  server.registerTool(
    'backtest_alert',
    {
      title: 'Backtest an alert',
      description:
        'When an alert would have fired between two moments, by the observations of that time. Creates no alert. `gaps` and `approximate` ' +
        'of the result limit its meaning. A long range gives a job with an `id`: call the tool with backtest_id until its state is done.',
      inputSchema: z
        .strictObject({
          alert: z
            .looseObject({ condition: z.enum(CONDITIONS) })
            .optional()
            .describe(
              'tokenMint (an outcome_id) or scope {market_id, event_id, venue, category, q}; condition; price (above, below, crosses_*, ' +
                'spread with direction at_most or at_least); change with unit (absolute, percent) and windowSeconds; notional (trade, ' +
                'volume with windowSeconds) or times with windowSeconds and windows; states (resolution); side, size or notional, price and direction (executable); sellTokenMint, size and price (net_difference); repeat and cooldownSeconds to fire again.',
            ),
          start: z
            .union([z.string(), z.number().int()])
            .optional()
            .describe('ISO 8601 with an offset, or epoch seconds.'),
          end: z.union([z.string(), z.number().int()]).optional().describe('The first moment that does not count.'),
          backtest_id: z.string().min(1).optional().describe('Reads this job, without the other fields.'),
        })
        .superRefine(({ backtest_id: id, ...request }, context) => {
          if (id === undefined) return;
          for (const [name, value] of Object.entries(request))
            if (value !== undefined)
              context.addIssue({ code: 'custom', path: [name], message: 'does not belong to backtest_id' });
        }),
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    },
    ({ alert, start, end, backtest_id: id }) =>
      toolResult(calls, async () => {
        const path = '/v1/alerts/backtest';
        const { data } =
          id === undefined
            ? await calls.post(path, { alert, start, end })
            : await calls.get(`${path}s/${encodeURIComponent(id)}`);
        const backtest = data as { id?: string; result?: Result } & Result;
        if (backtest.id === undefined) return { result: shortened(backtest) };
        return { job: { ...backtest, ...(backtest.result && { result: shortened(backtest.result) }) } };
      }),
  );
}

const amount = (description: string) => z.number().positive().optional().describe(description);

/** `change (change, unit, window_seconds, direction?)`, in the names of the tool. */
function conditionText(name: Condition): string {
  const { required, optional = [] } = conditionOf(name);
  const fields = [...required, ...optional.map((field) => `${field}?`)]
    .join(', ')
    .replace('windowSeconds', 'window_seconds')
    .replace('sellTokenMint', 'sell_outcome_id');
  const subject = isOfNewMarkets(name) ? ' (scope)' : '';
  return fields === '' ? `${name}${subject}` : `${name} (${fields})`;
}

interface Result {
  firings: readonly unknown[];
}

/** The result with its first firings; `firingCount` has the number of all. */
function shortened(result: Result): Result {
  return { ...result, firings: result.firings.slice(0, MAX_FIRINGS) };
}
