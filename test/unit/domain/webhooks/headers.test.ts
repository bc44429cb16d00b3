import { describe, expect, it } from 'vitest';
import { headerProblems } from '../../../../src/domain/webhooks/headers.ts';

const namesOf = (headers: Record<string, string>) => headerProblems(headers).map(({ name }) => name);

describe('headerProblems', () => {
  it.each([
    [{}],
    [{ Authorization: 'Bearer abc', 'x-api-key': '1', 'X_Y.z~': 'a b\tc'.replace('\t', ' ') }],
    [Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`X-${index}`, 'v']))],
    [{ ['x'.repeat(64)]: 'v'.repeat(1_024) }],
  ])('accepts %j', (headers) => expect(headerProblems(headers)).toEqual([]));

  it.each([
    ...[
      'accept-encoding',
      'connection',
      'content-encoding',
      'content-length',
      'content-type',
      'cookie',
      'date',
      'expect',
    ],
    ...['forwarded', 'host', 'keep-alive', 'te', 'trailer', 'transfer-encoding', 'upgrade', 'user-agent', 'via'],
    ...['proxy-a', 'sec-a', 'webhook-a', 'x-forwarded-a', 'x-webhook-a'],
  ])('rejects the name %s in any case', (name) => {
    expect(namesOf({ [name]: 'v' })).toEqual([name]);
    expect(namesOf({ [name.toUpperCase()]: 'v' })).toEqual([name.toUpperCase()]);
  });

  it.each(['', 'a b', 'a:b', 'a\r\nb', 'ä', 'x'.repeat(65)])('rejects the malformed name %j', (name) =>
    expect(namesOf({ [name]: 'v' })).toEqual([name]),
  );

  it.each(['', ' v', 'v ', 'a\r\nb', 'a\0', 'ä', 'v'.repeat(1_025)])(
    'rejects the value %j without repeating it',
    (value) => {
      const [problem] = headerProblems({ 'X-A': value });
      expect(problem?.name).toBe('X-A');
      if (value.length > 2) expect(problem?.message).not.toContain(value);
    },
  );

  it('rejects a name that occurs twice in different cases, eleven headers, and more than 4,096 characters', () => {
    expect(namesOf({ 'X-A': '1', 'x-a': '2' })).toEqual(['x-a']);
    const eleven = Object.fromEntries(Array.from({ length: 11 }, (_, index) => [`X-${index}`, 'v']));
    expect(namesOf(eleven)).toEqual([undefined]);
    const long = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`X-${index}`, 'v'.repeat(1_000)]));
    expect(namesOf(long)).toEqual([undefined]);
  });
});
