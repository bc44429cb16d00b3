import { afterAll, beforeAll, beforeEach } from 'vitest';
import { type Receiver, startReceiver } from '../../../../sim/receiver.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { parseSecretsKeys } from '../../../../src/domain/values/secret-keys.ts';
import type { Database } from '../../../../src/store/db/tx.ts';
import { createSecretBox } from '../../../../src/webhooks/secret-box.ts';
import type { Sender } from '../../../../src/webhooks/sender.ts';
import { deliverWebhook } from '../../../../workers/jobs/deliver-webhook.ts';
import { anAccount, aSubscription, type SubscriptionFields } from '../../../factories/alerts.ts';
import { aDelivery, type DeliveryFields } from '../../../factories/deliveries.ts';
import { createTestDatabase } from '../../../support/postgres/database.ts';
import { SECRET, testSender } from '../../webhooks/deliveries.ts';
import { type ContextFields, jobContext, RING, testConfig, UNUSED_URL } from '../worker-harness.ts';

interface OpenDatabase {
  db: Database;
  drop(): Promise<void>;
}
interface WebhookFields extends Partial<SubscriptionFields> {
  path?: string;
  secret?: string;
  /** The webhook that the secret is sealed for. Default: this one. */
  sealedFor?: string;
}
const BOX = createSecretBox(parseSecretsKeys(RING));

/** A database, a receiver and a sender for the tests of a file. Each test has its own account. `variables` are those of all jobs. */
export function deliveryDesk(
  variables: Record<string, string> = {},
  open: () => Promise<OpenDatabase> = () => createTestDatabase({ poolSize: 20 }),
) {
  let database: OpenDatabase;
  let receiver: Receiver;
  let sender: Sender;
  let account = 0n;
  let seen = 0;
  beforeAll(async () => {
    database = await open();
    receiver = await startReceiver();
    sender = await testSender({ extraCaPem: receiver.caPem });
  });
  afterAll(async () => {
    await sender.close();
    await receiver.close();
    await database.drop();
  });
  beforeEach(async () => {
    receiver.replyWith({});
    seen = receiver.requests.length;
    account = await anAccount(database.db);
  });

  /** The context of a new process. */
  const context = (fields: Partial<ContextFields> = {}, more: Record<string, string> = {}) =>
    jobContext({
      db: database.db,
      config: testConfig(UNUSED_URL, { ...variables, ...more }),
      sender,
      ...fields,
    });
  return {
    get db() {
      return database.db;
    },
    get receiver() {
      return receiver;
    },
    get sender() {
      return sender;
    },
    get accountId() {
      return account;
    },
    /** The number of requests before the test. */
    get seen() {
      return seen;
    },
    box: BOX,
    /** The requests of the test. */
    newRequests: () => receiver.requests.slice(seen),
    /** Stores a webhook of the receiver. Its secret is sealed as by the API. */
    async subscribed(fields: WebhookFields = {}) {
      const { path = 'hook', secret = SECRET, id = newId('wh'), sealedFor = id, ...rest } = fields;
      const url = `${receiver.url}/${path}`;
      const sealedSecret = BOX.seal(secret, sealedFor);
      return {
        id,
        secret,
        pk: await aSubscription(database.db, { accountId: account, id, url, sealedSecret, ...rest }),
      };
    },
    /** Stores a due delivery. */
    due: (subscriptionPk: bigint, fields: Partial<DeliveryFields> = {}) =>
      aDelivery(database.db, { accountId: account, subscriptionPk, ...fields }),
    context,
    /** Runs the job of a webhook in a new process. */
    run: (subscriptionPk: bigint, fields?: Partial<ContextFields>, more?: Record<string, string>) =>
      deliverWebhook.run({ subscriptionPk: String(subscriptionPk) }, context(fields, more)),
  };
}
