import { isName, MAX_NAME_LENGTH, SCOPES, type Scope } from '../../../src/domain/values/api-key.ts';
import { DAY_MS } from '../../../src/domain/values/durations.ts';
import type { ApiKeyRequest } from '../../../src/store/accounts/accounts.ts';
import type { AccountQuotas } from '../../../src/store/accounts/quotas.ts';
import { type ErrorDetail, invalidRequest } from '../../errors.ts';

/** The maximum of a Postgres integer column. */
export const MAX_LIMIT = 2_147_483_647;

/** The form of a new key. @throws ApiError `invalid_request` that lists all faults. */
export function readKeyForm(form: URLSearchParams, nowMs: number): ApiKeyRequest {
  const problems: ErrorDetail[] = [];
  const accountName = readName(form, 'account', problems);
  const name = readName(form, 'name', problems);
  const scopes = readScopes(form, problems);
  const expiresAt = readDay(form, nowMs, problems);
  if (problems.length > 0) throw invalidRequest(problems);
  return { accountName, name, scopes, ...(expiresAt && { expiresAt }) };
}

/** The form of a sign-in link. @throws ApiError `invalid_request` that lists all faults. */
export function readLinkForm(form: URLSearchParams): Pick<ApiKeyRequest, 'accountName' | 'scopes'> {
  const problems: ErrorDetail[] = [];
  const accountName = readName(form, 'account', problems);
  const scopes = readScopes(form, problems);
  if (problems.length > 0) throw invalidRequest(problems);
  return { accountName, scopes };
}

function readScopes(form: URLSearchParams, problems: ErrorDetail[]): Scope[] {
  const selected = form.getAll('scopes');
  const scopes = SCOPES.filter((scope) => selected.includes(scope));
  if (scopes.length === 0) problems.push({ path: 'scopes', message: 'choose at least one scope' });
  return scopes;
}

function readName(form: URLSearchParams, path: string, problems: ErrorDetail[]): string {
  const text = (form.get(path) ?? '').trim();
  if (text === '') problems.push({ path, message: 'must not be empty' });
  else if (!isName(text)) {
    problems.push({
      path,
      message: `must have at most ${MAX_NAME_LENGTH} characters and no control characters`,
    });
  }
  return text;
}

/** The end of the day, UTC. */
function readDay(form: URLSearchParams, nowMs: number, problems: ErrorDetail[]): Date | undefined {
  const text = (form.get('expires') ?? '').trim();
  if (text === '') return undefined;
  const startMs = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  const isDay = !Number.isNaN(startMs) && new Date(startMs).toISOString().startsWith(text);
  const end = new Date(startMs + DAY_MS);
  if (!isDay) problems.push({ path: 'expires', message: 'must be a day such as 2027-01-31' });
  else if (end.getTime() <= nowMs) problems.push({ path: 'expires', message: 'must not be in the past' });
  return end;
}

/** The limits of an account, with the labels of their form. */
export const LIMIT_FIELDS = {
  webhooks: 'Webhooks',
  alerts: 'Active alerts',
  wallets: 'Wallets',
  keys: 'Active keys',
  ratePerMinute: 'Requests per minute',
  coldReadsPerMinute: 'Cold reads per minute',
  archiveMbPerDay: 'Archive, megabytes per day',
} as const satisfies Readonly<Record<keyof AccountQuotas, string>>;

/** The form of an account's limits. An empty field means the default. @throws ApiError `invalid_request` */
export function readLimitsForm(form: URLSearchParams): AccountQuotas {
  const problems: ErrorDetail[] = [];
  const read = (path: keyof AccountQuotas): number | null => {
    const text = (form.get(path) ?? '').trim();
    if (text === '') return null;
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (value <= MAX_LIMIT) return value;
    problems.push({ path, message: `must be a whole number from 0 to ${MAX_LIMIT}, or empty` });
    return null;
  };
  const limits = {
    webhooks: read('webhooks'),
    alerts: read('alerts'),
    wallets: read('wallets'),
    keys: read('keys'),
    ratePerMinute: read('ratePerMinute'),
    coldReadsPerMinute: read('coldReadsPerMinute'),
    archiveMbPerDay: read('archiveMbPerDay'),
  };
  if (problems.length > 0) throw invalidRequest(problems);
  return limits;
}
