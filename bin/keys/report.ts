import { table, utc } from '../../cli/table.ts';
import type { ListedAccount, ListedApiKey } from '../../src/store/accounts/key-lists.ts';
import type { AccountQuotas } from '../../src/store/accounts/quotas.ts';

type KeyState = 'active' | 'expired' | 'revoked';

function stateOf({ revokedAt, expiresAt }: ListedApiKey, nowMs: number): KeyState {
  if (revokedAt !== null) return 'revoked';
  return expiresAt !== null && expiresAt.getTime() <= nowMs ? 'expired' : 'active';
}

/** The report for an operator: a line per key, times in UTC. */
export function keysText(keys: readonly ListedApiKey[], nowMs: number): string {
  if (keys.length === 0) return 'No keys.\n';
  const head = ['id', 'account', 'name', 'scopes', 'created', 'expires', 'last used', 'state'];
  const rows = keys.map((key) => [
    key.id,
    key.account,
    key.name,
    key.scopes.join(','),
    utc(key.createdAt),
    utc(key.expiresAt, 'never'),
    utc(key.lastUsedAt, 'never'),
    key.revokedAt === null ? stateOf(key, nowMs) : `revoked ${utc(key.revokedAt)}`,
  ]);
  return table([head, ...rows]);
}

/** The same for programs: one JSON array. */
export function keysJson(keys: readonly ListedApiKey[], nowMs: number): string {
  return JSON.stringify(
    keys.map((key) => ({
      id: key.id,
      account: key.account,
      name: key.name,
      scopes: key.scopes,
      state: stateOf(key, nowMs),
      created_at: key.createdAt,
      expires_at: key.expiresAt,
      last_used_at: key.lastUsedAt,
      revoked_at: key.revokedAt,
    })),
  );
}

export function accountsText(accounts: readonly ListedAccount[]): string {
  if (accounts.length === 0) return 'No accounts.\n';
  const head = ['account', 'created', 'keys', 'webhooks', 'alerts', 'wallets'];
  const rows = accounts.map(({ name, createdAt, ...counts }) => [
    name,
    utc(createdAt),
    ...[counts.keys, counts.webhooks, counts.alerts, counts.wallets].map(String),
  ]);
  return table([head, ...rows], [2, 3, 4, 5]);
}

export function accountsJson(accounts: readonly ListedAccount[]): string {
  return JSON.stringify(accounts.map(({ createdAt, name, ...counts }) => ({ name, created_at: createdAt, ...counts })));
}

/** Limits by their options. */
export function quotasText(quotas: AccountQuotas): string {
  const rows = Object.entries(quotasByOption(quotas)).map(([name, limit]) => [name, String(limit ?? 'default')]);
  return table([['limit', 'value'], ...rows]);
}

export function quotasJson(account: string, quotas: AccountQuotas): string {
  const { webhooks, alerts, wallets, keys, ratePerMinute, coldReadsPerMinute, archiveMbPerDay } = quotas;
  return JSON.stringify({
    account,
    webhooks,
    alerts,
    wallets,
    keys,
    rate_per_minute: ratePerMinute,
    cold_reads_per_minute: coldReadsPerMinute,
    archive_mb_per_day: archiveMbPerDay,
  });
}

function quotasByOption(quotas: AccountQuotas) {
  const { webhooks, alerts, wallets, keys, ratePerMinute, coldReadsPerMinute, archiveMbPerDay } = quotas;
  const objects = { webhooks, alerts, wallets, keys };
  return { ...objects, rate: ratePerMinute, 'cold-reads': coldReadsPerMinute, archive: archiveMbPerDay };
}
