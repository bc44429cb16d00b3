import { expect, it } from 'vitest';
import { presentDeliveryWithLog } from '../../../api/routes/deliveries.ts';
import type { DeliveryWithLog } from '../../../src/store/deliveries/reads.ts';

/** The fields of an attempt that show its answer. */
function presented(responseExcerpt: Buffer) {
  const attempt = { startedAt: new Date(), durationMs: 1, statusCode: 200, errorCode: null, responseHeaders: null };
  const delivery = { createdAt: new Date(), attemptLog: [{ ...attempt, responseExcerpt }], body: '{}' };
  const [shown] = presentDeliveryWithLog(delivery as unknown as DeliveryWithLog).attemptLog;
  return { responseBody: shown?.responseBody, responseEncoding: shown?.responseEncoding };
}

it.each([
  ['nothing', Buffer.from(''), { responseBody: '' }],
  ['text', Buffer.from('{"ok":true} ☂'), { responseBody: '{"ok":true} ☂' }],
  ['a byte order mark', Buffer.from('\uFEFFx'), { responseBody: '\uFEFFx' }],
  ['no UTF-8', Buffer.from([0x80, 0x81]), { responseBody: 'gIE=', responseEncoding: 'base64' }],
  ['text with U+0000', Buffer.from('a\0'), { responseBody: 'YQA=', responseEncoding: 'base64' }],
  [
    'a short body that ends inside a character',
    Buffer.from([0xe2, 0x98]),
    { responseBody: '4pg=', responseEncoding: 'base64' },
  ],
  [
    'an excerpt that is truncated inside a character',
    Buffer.concat([Buffer.alloc(4094, 'x'), Buffer.from([0xe2, 0x98])]),
    { responseBody: 'x'.repeat(4094) },
  ],
])('an attempt shows %s', (_name, bytes, expected) => {
  expect(presented(bytes)).toEqual(expected);
});
