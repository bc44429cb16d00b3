import { EntitySchema } from 'typeorm';
import { BIGINT } from './columns.ts';

/**
 * The columns of an account's own limits: objects, requests per minute, reads per minute that cause a request to a venue, and megabytes of
 * the archive per UTC day.
 */
export const LIMIT_COLUMNS = {
  webhooks: 'quota_webhooks',
  alerts: 'quota_alerts',
  wallets: 'quota_wallets',
  keys: 'quota_keys',
  ratePerMinute: 'rate_per_minute',
  coldReadsPerMinute: 'cold_reads_per_minute',
  archiveMbPerDay: 'quota_archive_mb_per_day',
} as const;
type Limits = Readonly<Record<keyof typeof LIMIT_COLUMNS, number | null>>;

const limit = (name: keyof Limits) => ({ type: 'int', name: LIMIT_COLUMNS[name], nullable: true }) as const;
const LIMITS = new EntitySchema<Limits>({
  name: 'account_limits',
  columns: {
    webhooks: limit('webhooks'),
    alerts: limit('alerts'),
    wallets: limit('wallets'),
    keys: limit('keys'),
    ratePerMinute: limit('ratePerMinute'),
    coldReadsPerMinute: limit('coldReadsPerMinute'),
    archiveMbPerDay: limit('archiveMbPerDay'),
  },
});

/** The owner of keys, subscriptions and alerts. */
interface AccountRow {
  id: bigint;
  name: string;
  createdAt: Date;
  limits: Limits;
}

export const AccountEntity = new EntitySchema<AccountRow>({
  name: 'account',
  columns: {
    id: { ...BIGINT, primary: true, generated: 'increment' },
    name: { type: 'text', unique: true },
    createdAt: { type: 'timestamptz', name: 'created_at', createDate: true },
  },
  embeddeds: { limits: { schema: LIMITS, prefix: false } },
});
