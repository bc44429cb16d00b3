import { expect, it } from 'vitest';
import { presentExcerpt } from '../../../api/routes/present-delivery.ts';

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
])('presentExcerpt shows %s', (_name, bytes, presented) => {
  expect(presentExcerpt(bytes)).toEqual(presented);
});
