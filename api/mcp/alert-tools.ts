import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import { ALERT_STATUSES } from '../../src/domain/alerts/alert.ts';
import { CONDITIONS } from '../../src/domain/alerts/conditions.ts';
import type { RouteCalls } from './internal-calls.ts';
import { toolResult } from './tool-result.ts';

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
      toolResult(async () => {
        const { data, meta } = await calls.get('/v1/alerts', { ...filter, tokenMint });
        return { alerts: data, next_cursor: meta['next_cursor'] ?? null };
      }),
  );

  server.registerTool(
    'create_alert',
    {
      title: 'Create a price alert',
      description:
        'Creates an alert that fires once, at the first observed price that meets its condition; touching the target counts. It fires at ' +
        "once when the present price meets it. The event goes to a webhook of the account and to the account's stream of events.",
      inputSchema: z.strictObject({
        outcome_id: z.string().min(1).describe('outcome_id of a market, or another token.'),
        condition: z.enum(['above', 'below']),
        price: z.number().positive().describe('The target; of an outcome at most 1.'),
        webhook_id: z.string().optional().describe('Default: the oldest active webhook that lists price_alert.'),
      }),
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    },
    ({ outcome_id: tokenMint, condition, price, webhook_id: webhookId }) =>
      toolResult(async () => {
        const body = { tokenMint, condition, price, ...(webhookId !== undefined && { webhookId }) };
        const { data } = await calls.post('/v1/alerts', body);
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
      toolResult(async () => {
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
                'volume with windowSeconds) or times with windowSeconds and windows; repeat and cooldownSeconds to fire again.',
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
      toolResult(async () => {
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

interface Result {
  firings: readonly unknown[];
}

/** The result with its first firings; `firingCount` has the number of all. */
function shortened(result: Result): Result {
  return { ...result, firings: result.firings.slice(0, MAX_FIRINGS) };
}
