import type { Exchange } from '../../../sim/exchange.ts';
import type { LiveFault } from './venue-under-test.ts';

/** Longer than the adapter on a slow venue waits, shorter than other clients wait. */
const SLOW_MS = 4_000;

/** Makes every request to a host of the simulated exchange fail in this way; `renamed` are fields that no adapter can read without. */
export function breakExchange(
  exchange: Exchange,
  fault: LiveFault,
  { host, renamed }: { host: '*' | 'manifold' | 'limitless'; renamed: readonly string[] },
): void {
  switch (fault) {
    case 'server_errors':
      exchange.addFault({ host, kind: 'status500' });
      break;
    case 'rate_limit':
      exchange.addFault({ host, kind: 'status429', retryAfterSeconds: 60 });
      break;
    case 'truncated_json':
      exchange.addFault({ host, kind: 'truncate' });
      break;
    case 'slow':
      exchange.addFault({ host, kind: 'latency', latencyMs: SLOW_MS });
      break;
    case 'renamed_field':
      for (const from of renamed) {
        exchange.addFault({ host, kind: 'rename_field', field: { from, to: `new_${from}` } });
      }
  }
}
