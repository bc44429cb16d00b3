import { afterAll, beforeAll, it } from 'vitest';
import { type BareReceiver, startBareReceiver } from './support/bare-peer.ts';
import { deliveryRate } from './support/delivery-rate.ts';
import { sizeOf, whole } from './support/numbers.ts';
import { report } from './support/report.ts';

/** BENCH_DELIVERIES=20000 for publishable figures; the default is a quick run. */
const DELIVERIES = sizeOf('BENCH_DELIVERIES', 2_000);

let receiver: BareReceiver;
beforeAll(async () => {
  receiver = await startBareReceiver();
});
afterAll(() => receiver.stop());

it.each([
  ['10 endpoints', { endpoints: 10 }],
  ['1,000 endpoints', { endpoints: 1_000 }],
  ['10 endpoints that take 100 ms', { endpoints: 10, kind: 'after/100' }],
])('delivers to %s, beside a bare undici loop to the same receiver', async (receivers, load) => {
  const { own, bare } = await deliveryRate(receiver, { deliveries: DELIVERIES, ...load });
  report([
    {
      title: `${whole(DELIVERIES)} deliveries to ${receivers}`,
      measured: `${whole(own)} deliveries/s`,
      baseline: `bare loop ${whole(bare)} posts/s`,
      ratio: own / bare,
      goal: { atLeast: 0.5 },
    },
  ]);
});
