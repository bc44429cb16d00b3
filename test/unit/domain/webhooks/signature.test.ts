import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import {
  generateSecret,
  InvalidSecretError,
  secretProblem,
  signBody,
  standardKey,
  standardSignature,
  verifyBody,
  verifyStandard,
} from '../../../../src/domain/webhooks/signature.ts';
import { anyCharacters } from '../../../factories/texts.ts';
import { signatureVectors } from '../../../support/signature-vectors.ts';

const NON_ASCII_BODY = '{"tokenSymbol":"Żółć 選挙 🗳️"}';
const FREE_TEXT = 'correct horse battery staple';

/** The reference library, reading the secret as a receiver would. */
function reference(secret: string): Webhook {
  return secret.startsWith('whsec_') ? new Webhook(secret) : new Webhook(secret, { format: 'raw' });
}

describe('a signature vector', () => {
  it('exists', () => expect(signatureVectors.length).toBeGreaterThanOrEqual(8));

  for (const { name, secrets, id, timestampSeconds, body, headers } of signatureVectors) {
    const [current = ''] = secrets;

    it(`${name}: has the signatures of its text and of its bytes`, () => {
      expect(signBody(current, body)).toBe(headers['X-Webhook-Signature']);
      expect(signBody(current, Buffer.from(body))).toBe(headers['X-Webhook-Signature']);
      expect(standardSignature(secrets, id, timestampSeconds, body)).toBe(headers['webhook-signature']);
      expect(standardSignature(secrets, id, timestampSeconds, Buffer.from(body))).toBe(headers['webhook-signature']);
    });

    it(`${name}: verifies only unchanged`, () => {
      const delivery = { id, timestamp: String(timestampSeconds), signature: headers['webhook-signature'], body };
      expect(verifyBody(current, body, headers['X-Webhook-Signature'])).toBe(true);
      expect(verifyBody(current, `${body} `, headers['X-Webhook-Signature'])).toBe(false);
      for (const secret of secrets) expect(verifyStandard([secret], delivery, timestampSeconds)).toBe('ok');
      expect(verifyStandard([`other ${current}`], delivery, timestampSeconds)).toBe('bad_signature');
      expect(verifyStandard(secrets, { ...delivery, body: `${body} ` }, timestampSeconds)).toBe('bad_signature');
      expect(verifyStandard(secrets, { ...delivery, id: 'evt_x' }, timestampSeconds)).toBe('bad_signature');
    });

    it(`${name}: equals the signature of the standardwebhooks library`, () => {
      const expected = secrets.map((secret) => reference(secret).sign(id, new Date(timestampSeconds * 1000), body));
      expect(headers['webhook-signature']).toBe(expected.join(' '));
    });
  }
});

describe('the standardwebhooks library', () => {
  const generated = generateSecret();
  const cases = { generated, whsec: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'free text': FREE_TEXT };
  const nowSeconds = Math.floor(Date.now() / 1000);
  const headersFor = (secrets: string[], atSeconds: number) => ({
    'webhook-id': 'evt_1',
    'webhook-timestamp': String(atSeconds),
    'webhook-signature': standardSignature(secrets, 'evt_1', atSeconds, NON_ASCII_BODY),
  });

  for (const [name, secret] of Object.entries(cases)) {
    it(`accepts a delivery with a ${name} secret and a body beyond ASCII`, () => {
      const headers = headersFor([secret], nowSeconds);
      expect(reference(secret).verify(Buffer.from(NON_ASCII_BODY), headers)).toEqual(JSON.parse(NON_ASCII_BODY));
      expect(() => reference(`${FREE_TEXT}!`).verify(NON_ASCII_BODY, headers)).toThrow();
    });
  }

  it('accepts either secret during a rotation', () => {
    const headers = headersFor([generated, FREE_TEXT], nowSeconds);
    for (const secret of [generated, FREE_TEXT]) {
      expect(reference(secret).verify(NON_ASCII_BODY, headers)).toEqual(JSON.parse(NON_ASCII_BODY));
    }
  });

  it('rejects a signature that is too old, as verifyStandard does', () => {
    expect(() => reference(generated).verify(NON_ASCII_BODY, headersFor([generated], nowSeconds - 400))).toThrow('old');
  });
});

describe('verifyStandard', () => {
  const at = (timestamp: string, nowSeconds: number) => {
    const signature = standardSignature([FREE_TEXT], 'evt_1', 1000, '{}');
    return verifyStandard([FREE_TEXT], { id: 'evt_1', timestamp, signature, body: '{}' }, nowSeconds);
  };

  it('allows five minutes in both directions, to the second', () => {
    expect(at('1000', 1300)).toBe('ok');
    expect(at('1000', 1301)).toBe('too_old');
    expect(at('1000', 700)).toBe('ok');
    expect(at('1000', 699)).toBe('too_new');
    expect(at('999999999999', 1000)).toBe('too_new');
  });

  it.each(['', 'soon', '1000000000000', '1000s', '1000.0', ' 1000', '+1000', '-1000', '1e3', '0x3e8'])(
    'rejects the timestamp %j',
    (timestamp) => expect(at(timestamp, 1000)).toBe('bad_timestamp'),
  );

  it('finds the match anywhere in the list and ignores other versions', () => {
    const good = standardSignature([FREE_TEXT], 'evt_1', 1000, '{}');
    const verdict = (signature: string) =>
      verifyStandard([FREE_TEXT], { id: 'evt_1', timestamp: '1000', signature, body: '{}' }, 1000);
    expect(verdict(`v1a,AAAA v1,AAAA ${good}`)).toBe('ok');
    expect(verdict(`${good} v1,AAAA`)).toBe('ok');
    expect(verdict(good.replace('v1,', 'v2,'))).toBe('bad_signature');
    expect(verdict('')).toBe('bad_signature');
    expect(verifyStandard([], { id: 'evt_1', timestamp: '1000', signature: good, body: '{}' }, 1000)).toBe(
      'bad_signature',
    );
  });

  it('law: accepts every signed delivery, and none with one changed character', () => {
    fc.assert(
      fc.property(anyCharacters(), fc.nat({ max: 300 }), fc.boolean(), (text, position, free) => {
        const body = text.toWellFormed();
        const secrets = free ? [FREE_TEXT] : [generateSecret(), FREE_TEXT];
        const signature = standardSignature(secrets, 'evt_1', 5000, body);
        const header = signBody(FREE_TEXT, body);
        const index = position % (body.length + 1);
        const changed = `${body.slice(0, index)}x${body.slice(index)}`;
        const delivery = { id: 'evt_1', timestamp: '5000', signature };
        return (
          verifyStandard([FREE_TEXT], { ...delivery, body }, 5000) === 'ok' &&
          verifyStandard([FREE_TEXT], { ...delivery, body: changed }, 5000) === 'bad_signature' &&
          verifyBody(FREE_TEXT, body, header) &&
          !verifyBody(FREE_TEXT, changed, header)
        );
      }),
    );
  });
});

describe('secrets', () => {
  it('are generated from 32 random bytes and pass their own check', () => {
    const secret = generateSecret();
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(standardKey(secret)).toHaveLength(32);
    expect(secretProblem(secret)).toBeNull();
    expect(generateSecret()).not.toBe(secret);
  });

  const base64 = (bytes: number) => `whsec_${Buffer.alloc(bytes, 7).toString('base64')}`;

  it.each([
    'x'.repeat(16),
    'x'.repeat(256),
    'every printable ~ character !',
    'Whsec_is not the prefix',
    base64(24),
    base64(64),
  ])('accepts %j', (secret) => expect(secretProblem(secret)).toBeNull());

  it.each([
    ['', '16 to 256'],
    ['x'.repeat(15), '16 to 256'],
    ['x'.repeat(257), '16 to 256'],
    ['tab\tis not printable', 'printable'],
    ['line feed at the end\n', 'printable'],
    ['ünïcode is not ASCII', 'printable'],
    ['nul \u0000 is not allowed', 'printable'],
    [base64(23), '24 to 64'],
    [base64(65), '24 to 64'],
    ['whsec_not base64 at all!', 'canonical'],
    [base64(25).replace(/=+$/, ''), 'canonical'],
    [`v1,${base64(32)}`, 'at its beginning or not at all'],
    [` ${base64(32)}`, 'at its beginning'],
    [`"${base64(32)}"`, 'at its beginning'],
    [`whsec_${Buffer.alloc(25, 255).toString('base64url')}`, 'canonical'],
    [`whsec_${'A'.repeat(33)}B==`, 'canonical'],
  ])('rejects %j', (secret, why) => {
    const problem = secretProblem(secret);
    expect(problem).toContain(why);
    if (secret.length > 6) expect(problem).not.toContain(secret);
  });

  it('never give a key from partly decoded base64', () => {
    expect(() => standardKey('whsec_')).toThrow(InvalidSecretError);
    expect(() => standardKey('whsec_')).toThrow(expect.objectContaining({ code: 'invalid_secret', retryable: false }));
    expect(() => standardKey('whsec_not base64 at all!')).toThrow(InvalidSecretError);
    expect(standardKey(FREE_TEXT)).toEqual(Buffer.from(FREE_TEXT));
  });
});
