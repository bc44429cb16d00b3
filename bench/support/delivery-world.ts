import { ruleBody } from '../../src/domain/alerts/rule-event.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { newId } from '../../src/domain/values/ids.ts';
import { generateSecret } from '../../src/domain/webhooks/signature.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { createSecretBox } from '../../src/webhooks/secret-box.ts';
import { anAccount } from '../../test/factories/alerts.ts';
import { createTestDatabase } from '../../test/support/postgres/database.ts';
import { OddswireProcess } from '../../test/support/processes/system.ts';
import type { BareReceiver } from './bare-peer.ts';
import { NODE_OPTIONS } from './node-options.ts';

const KEY = Buffer.alloc(32, 7);

const INSERT_SUBSCRIPTIONS = sql(
  'bench_subscriptions',
  `INSERT INTO webhook_subscription (id, account_id, url, events, sealed_secret)
   SELECT id, $1, url, '{price_alert}', sealed FROM unnest($2::text[], $3::text[], $4::text[]) AS s (id, url, sealed)
   RETURNING pk`,
);
const INSERT_DELIVERIES = sql(
  'bench_deliveries',
  `WITH made AS (
     INSERT INTO event (id, account_id, type, body)
     SELECT id, $1, 'price_alert', body FROM unnest($2::text[], $3::text[]) AS e (id, body) RETURNING pk, id)
   INSERT INTO delivery (id, event_pk, subscription_pk)
   SELECT d.id, made.pk, d.subscription_pk
   FROM unnest($2::text[], $4::text[], $5::bigint[]) AS d (event_id, id, subscription_pk) JOIN made ON made.id = d.event_id`,
);

/** A database with subscriptions at the receiver, and processes that deliver to it. */
export interface DeliveryWorld {
  readonly db: Database;
  readonly databaseUrl: string;
  readonly accountId: bigint;
  /** Starts one more process; resolves when it is ready. */
  start(name: 'deliverer' | 'alerter', environment?: Record<string, string>): Promise<void>;
  /** Creates a subscription per path at the receiver, or at another name of it; returns their keys. */
  subscribe(paths: readonly string[], at?: string): Promise<bigint[]>;
  /** Creates one due delivery to each of these subscriptions, in one transaction; returns the ids of the events. */
  makeDue(subscriptionPks: readonly bigint[]): Promise<string[]>;
  /** Ends the processes and drops the database. */
  stop(): Promise<void>;
}

export async function aDeliveryWorld(receiver: BareReceiver): Promise<DeliveryWorld> {
  const test = await createTestDatabase();
  const accountId = await anAccount(test.db);
  const processes: OddswireProcess[] = [];
  const box = createSecretBox([{ kid: 'bench', key: KEY }]);
  return {
    db: test.db,
    databaseUrl: test.url,
    accountId,
    async start(name, environment = {}) {
      const started = new OddswireProcess(name, {
        DATABASE_URL: test.url,
        SECRETS_KEYS: `bench:${KEY.toString('base64')}`,
        VENUES: 'polymarket',
        WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8',
        WEBHOOK_CA_FILE: receiver.caFile,
        LOG_LEVEL: 'info',
        METRICS_PORT: '0',
        ...NODE_OPTIONS,
        ...environment,
      });
      processes.push(started);
      await started.start();
    },
    async subscribe(paths, at = receiver.origin) {
      const ids = paths.map(() => newId('wh'));
      const rows = await test.db.query<{ pk: bigint }>(INSERT_SUBSCRIPTIONS, [
        accountId,
        ids,
        paths.map((path) => at + path),
        ids.map((id) => box.seal(generateSecret(), id)),
      ]);
      return rows.map((row) => row.pk);
    },
    async makeDue(subscriptionPks) {
      const eventIds = subscriptionPks.map(() => newId('evt'));
      const bodies = eventIds.map(anAlertBody);
      const deliveryIds = subscriptionPks.map(() => newId('dlv'));
      await test.db.query(INSERT_DELIVERIES, [accountId, eventIds, bodies, deliveryIds, subscriptionPks]);
      return eventIds;
    },
    async stop() {
      await Promise.all(processes.map((item) => item.end('SIGTERM')));
      await test.drop();
    },
  };
}

/** The body of a price alert as oddswire sends it. */
export function anAlertBody(eventId: string): string {
  return ruleBody({
    eventId,
    occurredAt: new Date(),
    alertId: newId('alert'),
    tokenMint: '71321045679252212594626385532706912750332728571942532289631379312455583992563',
    tokenSymbol: 'Yes',
    condition: 'above',
    threshold: decimal('0.65'),
    thresholdField: 'price',
    firing: { price: decimal('0.66') },
  });
}
