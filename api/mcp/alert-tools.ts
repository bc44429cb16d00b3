import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { z } from 'zod';
import type { RouteCalls } from './internal-calls.ts';
import { toolResult } from './tool-result.ts';

const MAX_ALERTS = 100;
const DEFAULT_ALERTS = 20;

/** The tools of price alerts, for keys with the scope `alerts`. */
export function addAlertTools(server: McpServer, calls: RouteCalls): void {
  server.registerTool(
    'list_alerts',
    {
      title: 'List price alerts',
      description: "The account's price alerts, newest first.",
      inputSchema: {
        status: z.enum(['active', 'triggered', 'expired']).optional(),
        outcome_id: z.string().optional().describe('Only alerts of this outcome or token.'),
        limit: z.number().int().min(1).max(MAX_ALERTS).default(DEFAULT_ALERTS),
        cursor: z.string().optional().describe('next_cursor of the previous page.'),
      },
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
      inputSchema: {
        outcome_id: z.string().min(1).describe('outcome_id of a market, or another token.'),
        condition: z.enum(['above', 'below']),
        price: z.number().positive().describe('The target; of an outcome at most 1.'),
        webhook_id: z.string().optional().describe('Default: the oldest active webhook that lists price_alert.'),
      },
      annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    },
    ({ outcome_id: tokenMint, condition, price, webhook_id: webhookId }) =>
      toolResult(async () => {
        const body = { tokenMint, condition, price, ...(webhookId !== undefined && { webhookId }) };
        const { data } = await calls.post('/v1/alerts', body);
        return { alert: data };
      }),
  );
}
