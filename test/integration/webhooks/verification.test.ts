import { Webhook as StandardWebhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ReceivedRequest, type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { generateSecret } from '../../../src/domain/webhooks/signature.ts';
import type { Sender } from '../../../src/webhooks/sender.ts';
import { type SignatureVector, signatureVectors } from '../../support/signature-vectors.ts';
import { delivery, testSender } from './deliveries.ts';
import { askSnippet, codeBlock, LANGUAGES, type SnippetAnswer, type SnippetQuestion } from './documentation.ts';

const BODY = '{"id":"evt_1","type":"price_alert","data":{"price":0.10,"title":"Żółć 選挙 🗳️ \\u0000"}}';
const OTHER_SECRET = 'quite another secret';

/** The kinds of secret that a client can have, and two at once. */
const SECRETS: readonly [string, readonly [string, ...string[]]][] = [
  ['a generated secret', [generateSecret()]],
  ['a whsec_ secret of the client', ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']],
  ['a free-text secret', ['correct horse battery staple']],
  ['a generated and a free-text secret, one being rotated out', [generateSecret(), 'correct horse battery staple']],
  ['a free-text and a generated secret, one being rotated out', ['correct horse battery staple', generateSecret()]],
];

describe('a delivery of the sender', () => {
  let receiver: Receiver;
  let sender: Sender;
  beforeAll(async () => {
    receiver = await startReceiver();
    sender = await testSender({ extraCaPem: receiver.caPem });
  });
  afterAll(async () => {
    await sender.close();
    await receiver.close();
  });

  async function received(secrets: readonly [string, ...string[]]): Promise<ReceivedRequest> {
    await sender.send(delivery(receiver.url, { secrets, body: BODY }));
    const request = receiver.requests.at(-1);
    if (request === undefined) throw new Error('nothing came');
    return request;
  }

  const libraries = { standardwebhooks: StandardWebhook, svix: SvixWebhook };
  const rows = Object.entries(libraries).flatMap(([library, Webhook]) =>
    SECRETS.map(([what, secrets]) => [library, what, Webhook, secrets] as const),
  );

  it.each(rows)('is accepted by %s with %s, and only unchanged', async (_library, _label, Webhook, secrets) => {
    const { headers, body } = await received(secrets);
    const given = headers as Record<string, string>;
    for (const secret of secrets) {
      const receiving = new Webhook(secret, secret.startsWith('whsec_') ? undefined : { format: 'raw' });
      expect(receiving.verify(body, given)).toEqual(JSON.parse(BODY));
      expect(() => receiving.verify(Buffer.concat([body, Buffer.from(' ')]), given)).toThrow('No matching signature');
      expect(() => receiving.verify(body, { ...given, 'webhook-id': 'evt_2' })).toThrow('No matching signature');
    }
    expect(() => new Webhook(OTHER_SECRET, { format: 'raw' }).verify(body, given)).toThrow('No matching signature');
  });

  it.for(Object.entries(LANGUAGES))(
    'is judged the same by the %s snippet of the documentation',
    async ([language, program], { skip }) => {
      const sent: SnippetQuestion[] = [];
      const expected: SnippetAnswer[] = [];
      const ask = (question: SnippetQuestion, answer: SnippetAnswer) => {
        sent.push(question);
        expected.push(answer);
      };
      for (const [, secrets] of SECRETS) {
        const { headers, body } = await received(secrets);
        const given = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
        const question = { headers: given, bodyBase64: body.toString('base64'), nowSeconds: Date.now() / 1000 };
        for (const [index, secret] of secrets.entries()) {
          ask(
            { ...question, nowSeconds: Math.round(question.nowSeconds), secret },
            { body: index === 0, standard: true },
          );
        }
      }
      for (const vector of signatureVectors) for (const [question, answer] of variants(vector)) ask(question, answer);
      const answers = await askSnippet(program, sent);
      if (answers === null)
        skip(`no ${program.program} on PATH: the ${language} snippet of docs/webhooks.md was not run`);
      expect(answers).toEqual(expected);
    },
  );
});

/** A valid vector, and all of its invalid variants. */
function variants(vector: SignatureVector): [SnippetQuestion, SnippetAnswer][] {
  const [secret] = vector.secrets;
  const headers: Record<string, string> = {
    'x-webhook-signature': vector.headers['X-Webhook-Signature'],
    'webhook-id': vector.id,
    'webhook-timestamp': String(vector.timestampSeconds),
    'webhook-signature': vector.headers['webhook-signature'],
  };
  const good = { secret, headers, bodyBase64: encoded(vector.body), nowSeconds: vector.timestampSeconds };
  const both = { body: true, standard: true };
  const neither = { body: false, standard: false };
  const bodyOnly = { body: true, standard: false };
  const withHeaders = (changed: Record<string, string>) => ({ ...good, headers: { ...headers, ...changed } });
  const [hex = ''] = headers['x-webhook-signature']?.split('=').slice(1) ?? [];
  return [
    [good, both],
    ...vector.secrets.slice(1).map((old): [SnippetQuestion, SnippetAnswer] => [
      { ...good, secret: old },
      { body: false, standard: true },
    ]),
    [{ ...good, secret: OTHER_SECRET }, neither],
    [{ ...good, bodyBase64: encoded(`${vector.body} `) }, neither],
    [{ ...good, headers: {} }, neither],
    [{ ...good, nowSeconds: vector.timestampSeconds + 300 }, both],
    [{ ...good, nowSeconds: vector.timestampSeconds + 301 }, bodyOnly],
    [{ ...good, nowSeconds: vector.timestampSeconds - 301 }, bodyOnly],
    [withHeaders({ 'webhook-timestamp': 'soon' }), bodyOnly],
    [withHeaders({ 'webhook-timestamp': '-1' }), bodyOnly],
    [withHeaders({ 'webhook-id': 'evt_other' }), bodyOnly],
    [withHeaders({ 'webhook-signature': '' }), bodyOnly],
    [withHeaders({ 'webhook-signature': headers['webhook-signature']?.replaceAll('v1,', 'v2,') ?? '' }), bodyOnly],
    [withHeaders({ 'webhook-signature': `v1a,AAAA v1,AAAA ${headers['webhook-signature']}` }), both],
    [withHeaders({ 'x-webhook-signature': hex }), { body: false, standard: true }],
    [withHeaders({ 'x-webhook-signature': `sha256=${hex.slice(1)}` }), { body: false, standard: true }],
    [withHeaders({ 'x-webhook-signature': 'sha256=é' }), { body: false, standard: true }],
  ];
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64');
}

it('the vector on the page is the first of the file', () => {
  const [first] = signatureVectors;
  expect(JSON.parse(codeBlock('json vector'))).toEqual({ secret: first?.secrets[0], ...first?.headers });
});
