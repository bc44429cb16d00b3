import { newId } from '../../src/domain/values/ids.ts';
import type { EventFilter } from '../../src/domain/webhooks/filter.ts';
import type { OrderBy } from '../../src/domain/webhooks/order.ts';
import { ensureTokens } from '../../src/store/catalog/tokens.ts';
import { type Database, type Queryable, sql, type Tx } from '../../src/store/db/tx.ts';
import { encodeCause } from '../../src/store/marks/detail.ts';
import { insertMarks } from '../../src/store/marks/marks.ts';

const INSERT_ACCOUNT = sql('test_insert_account', 'INSERT INTO account (name) VALUES ($1) RETURNING id');
const INSERT_SUBSCRIPTION = sql(
  'test_insert_subscription',
  `INSERT INTO webhook_subscription (id, account_id, url, events, sealed_secret, status, order_by, filter,
     max_per_second, sealed_headers)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING pk`,
);
const INSERT_ALERT = sql(
  'test_insert_alert',
  `INSERT INTO alert (id, account_id, token_id, condition, target, webhook_pk) VALUES ($1, $2, $3, $4, $5, $6) RETURNING pk`,
);

async function keyOf(db: Queryable, statement: ReturnType<typeof sql>, values: unknown[]): Promise<bigint> {
  const [row] = await db.query<{ id?: bigint; pk?: bigint }>(statement, values);
  return row?.pk ?? row?.id ?? 0n;
}

export function anAccount(db: Database): Promise<bigint> {
  return keyOf(db, INSERT_ACCOUNT, [newId('req')]);
}

export interface SubscriptionFields {
  id?: string;
  accountId: bigint;
  url?: string;
  events?: string[];
  sealedSecret?: string;
  status?: 'active' | 'paused';
  orderBy?: OrderBy;
  filter?: EventFilter;
  maxPerSecond?: number;
  sealedHeaders?: string;
}

export function aSubscription(db: Database, fields: SubscriptionFields): Promise<bigint> {
  const { id = newId('wh'), accountId, url = 'https://receiver.test/', events = ['price_alert'] } = fields;
  const { sealedSecret = '', status = 'active', orderBy = null, filter, maxPerSecond = null } = fields;
  return keyOf(db, INSERT_SUBSCRIPTION, [
    id,
    accountId,
    url,
    events,
    sealedSecret,
    status,
    orderBy,
    filter === undefined ? null : JSON.stringify(filter),
    maxPerSecond,
    fields.sealedHeaders ?? null,
  ]);
}

export interface AlertFields {
  accountId: bigint;
  mint: string;
  condition: 'above' | 'below';
  target: string;
  webhookPk?: bigint;
}

/** Creates an alert as the API does: the row and its mark in one transaction. */
export async function anAlert(tx: Tx, fields: AlertFields): Promise<{ id: string; pk: bigint; tokenId: bigint }> {
  const { accountId, mint, condition, target, webhookPk = null } = fields;
  const tokenId = (await ensureTokens(tx, [mint], 'USD')).get(mint) ?? 0n;
  const id = newId('alert');
  const pk = await keyOf(tx, INSERT_ALERT, [id, accountId, tokenId, condition, target, webhookPk]);
  await insertMarks(tx, 'evaluate-alerts', [
    { key: tokenId, detail: encodeCause({ kind: 'alertCreated', alertPk: pk }) },
  ]);
  return { id, pk, tokenId };
}
