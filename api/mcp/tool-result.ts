import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import { ApiError } from '../errors.ts';
import type { InternalQuery, RouteAnswer } from '../http/internal-client.ts';

/** Calls of the API's own routes for one request of a client. They throw ApiError. */
export interface RouteCalls {
  readonly requestId: string;
  get(path: string, query?: InternalQuery): Promise<RouteAnswer>;
  post(path: string, body: object): Promise<RouteAnswer>;
  delete(path: string): Promise<RouteAnswer>;
}

/** The result of a tool: its value as JSON text and as structure. An error of the API is a result that the model can read. */
export async function toolResult(
  { requestId }: Pick<RouteCalls, 'requestId'>,
  work: () => Promise<Record<string, unknown>>,
): Promise<CallToolResult> {
  try {
    const value = await work();
    return { content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const details = error.details.map(({ path, message }) => `${path}: ${message}`);
    const lines = [`${error.code}: ${error.message}`, ...details, `request ${requestId}`];
    return { content: [{ type: 'text', text: lines.join('\n') }], isError: true };
  }
}

/** The codes of a market that has no data of a kind, or none yet. */
const WITHOUT_DATA = ['no_data_yet', 'orderbook_not_available', 'orderbook_not_supported'];

/** The value, or null when the market has no such data. */
export async function ifKnown<Value>(value: Promise<Value>): Promise<Value | null> {
  try {
    return await value;
  } catch (error) {
    if (error instanceof ApiError && WITHOUT_DATA.includes(error.code)) return null;
    throw error;
  }
}
