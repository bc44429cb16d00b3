import { afterAll, beforeAll, it } from 'vitest';
import { type BareReceiver, startBareReceiver } from './support/bare-peer.ts';
import { type CurvePoint, curve } from './support/curve.ts';
import { deliveryRate } from './support/delivery-rate.ts';
import { sizeOf, sizesOf, whole } from './support/numbers.ts';
import { note, report } from './support/report.ts';

/** The curve's numbers of endpoints. */
const ENDPOINTS = sizesOf('BENCH_CURVE_ENDPOINTS', [1, 100, 10_000]);
/** Deliveries per point; at least one for each endpoint. */
const DELIVERIES = sizeOf('BENCH_CURVE_DELIVERIES', 10_000);

let receiver: BareReceiver;
beforeAll(async () => {
  receiver = await startBareReceiver();
});
afterAll(() => receiver.stop());

it('delivers to more and more endpoints', async () => {
  const points: CurvePoint[] = [];
  for (const endpoints of ENDPOINTS) {
    const { own, bare } = await deliveryRate(receiver, { deliveries: Math.max(DELIVERIES, endpoints), endpoints });
    points.push({
      size: `${whole(endpoints)} ${endpoints === 1 ? 'endpoint' : 'endpoints'}`,
      measured: `${whole(own)} deliveries/s, ${(own / bare).toFixed(2)} of the bare loop`,
      value: own,
    });
  }
  report(curve('deliveries', points));
  note(
    'one endpoint gets at most 8 deliveries at once, from the bare loop too; from 8 endpoints on it is 64 to the origin',
  );
});
