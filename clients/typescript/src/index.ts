import { accountCalls } from './account-calls.ts';
import type { DecimalType } from './decimals.ts';
import { marketCalls } from './market-calls.ts';
import { streamCalls } from './stream.ts';
import { type ClientOptions, createTransport } from './transport.ts';

export type { DecimalType } from './decimals.ts';
export {
  type ErrorCode,
  type ErrorDetail,
  OddswireApiError,
  OddswireConnectionError,
  OddswireWebhookError,
} from './errors.ts';
export type { Page, PageOptions } from './paging.ts';
export type { components, operations, paths } from './schema.ts';
export type { EventStreamItem, SilentMessage, StreamItem, StreamOptions, StreamQuery } from './stream.ts';
export type { CallOptions, ClientOptions, RetryOptions, Warning, WriteOptions } from './transport.ts';
export type * from './types.ts';
export { verifyWebhook, type WebhookRequest } from './verify-webhook.ts';

/** Every route of the API. Decimals of market data are `D`. */
export type OddswireClient<D extends DecimalType = number> = ReturnType<typeof marketCalls<D>> &
  ReturnType<typeof accountCalls<D>> &
  ReturnType<typeof streamCalls<D>>;

/**
 * Creates a client. Its methods throw `OddswireApiError` for a failed answer and `OddswireConnectionError` without an answer.
 *
 * `decimals` is the type of exact decimals in market data: `number` (default), which `JSON.parse` rounds to a double, or `string` with
 * every digit. A service with `DECIMAL_FORMAT=string` requires `string`.
 * @throws TypeError for an invalid address or key.
 */
export function createClient(options: ClientOptions & { decimals: 'string' }): OddswireClient<string>;
export function createClient(options: ClientOptions & { decimals?: 'number' }): OddswireClient;
export function createClient({
  decimals = 'number',
  ...options
}: ClientOptions & { decimals?: 'number' | 'string' }): OddswireClient<DecimalType> {
  const transport = createTransport<DecimalType>(options, decimals);
  return { ...marketCalls(transport), ...accountCalls(transport), ...streamCalls(transport) };
}
