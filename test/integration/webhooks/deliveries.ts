import type { OutgoingDelivery } from '../../../src/webhooks/attempt.ts';
import type { NameResolver } from '../../../src/webhooks/resolver.ts';
import { createSender, type Sender } from '../../../src/webhooks/sender.ts';
import { allowing } from '../../support/address-rules.ts';
import { testAuthority } from '../../support/tls.ts';

type SenderOptions = Parameters<typeof createSender>[0];

export const SECRET = 'correct horse battery staple';
export const LOOPBACK = allowing('127.0.0.0/8');
/** Longer than an answer takes on a slow machine, and shorter than the lease of an attempt. A test that reaches it has failed. */
export const PATIENT_MS = 50_000;

/** A delivery as the database returns it, to `url`. */
export function delivery(url: string, more: Partial<OutgoingDelivery> = {}): OutgoingDelivery {
  return {
    url,
    secrets: [SECRET],
    webhookId: 'wh_1',
    eventId: 'evt_1',
    eventType: 'price_alert',
    deliveryId: 'dlv_1',
    attemptNumber: 1,
    body: '{"id":"evt_1","type":"price_alert","data":{}}',
    ...more,
  };
}

/** A sender that may reach loopback and trusts the test authority. */
export async function testSender(more: Partial<SenderOptions> = {}): Promise<Sender> {
  const { caPem } = await testAuthority();
  const limits = { deadlineMs: PATIENT_MS, connectTimeoutMs: PATIENT_MS };
  return createSender({ version: '1.2.3', ...limits, rules: LOOPBACK, extraCaPem: caPem, ...more });
}

/** Names and their addresses; other names have none. */
export function fixedResolver(names: Readonly<Record<string, readonly string[]>>): NameResolver {
  return {
    async resolve(hostname) {
      const addresses = names[hostname];
      if (addresses === undefined) throw new Error('queryA ENOTFOUND');
      return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    },
    close: () => undefined,
  };
}
