import { accountCalls } from './account-calls.ts';
import type { DecimalType } from './decimals.ts';
import { marketCalls } from './market-calls.ts';
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
export type { CallOptions, ClientOptions, RetryOptions, WriteOptions } from './transport.ts';
export type * from './types.ts';
export { verifyWebhook, type WebhookRequest } from './verify-webhook.ts';

/** Every route of the API. Decimals of market data are `D`. */
export type OddswireClient<D extends DecimalType = number> = ReturnType<typeof marketCalls<D>> &
  ReturnType<typeof accountCalls<D>>;

/**
 * A client of one oddswire. Its methods throw `OddswireApiError` for an answer that says no and `OddswireConnectionError` when none came.
 *
 * `decimals` says how the exact decimals of market data are given: as `number` (default), which `JSON.parse` rounds to a double,
 * or as `string` with every digit. A service that sends strings itself (`DECIMAL_FORMAT=string`) needs `string`.
 * @throws TypeError for an address or key that cannot be one.
 */
export function createClient(options: ClientOptions & { decimals: 'string' }): OddswireClient<string>;
export function createClient(options: ClientOptions & { decimals?: 'number' }): OddswireClient;
export function createClient({
  decimals = 'number',
  ...options
}: ClientOptions & { decimals?: 'number' | 'string' }): OddswireClient<DecimalType> {
  const transport = createTransport<DecimalType>(options, decimals);
  return { ...marketCalls(transport), ...accountCalls(transport) };
}
