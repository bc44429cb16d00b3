import { describe, expect, test } from 'vitest';
import { isWebAddress, parseUrl } from '../../../../src/domain/values/parse-url.ts';

describe('parseUrl', () => {
  test('accepts a URL with characters of Latin-1 after many other URLs', () => {
    for (let i = 0; i < 200_000; i += 1) parseUrl(`https://example.com/${i % 7}`);
    expect(parseUrl('https://bücher.example/é')?.href).toBe('https://xn--bcher-kva.example/%C3%A9');
  });

  test('returns null for a text that is no URL, and completes a path by its base', () => {
    expect(parseUrl('example.com')).toBeNull();
    expect(parseUrl('https://')).toBeNull();
    expect(parseUrl('/a?b', 'https://example.com')?.href).toBe('https://example.com/a?b');
  });
});

describe('isWebAddress', () => {
  test.each(['https://example.com', 'http://example.com/é'])('accepts %s', (text) => {
    expect(isWebAddress(text)).toBe(true);
  });
  test.each([null, undefined, '', 'javascript:alert(1)', 'ftp://example.com', '//example.com'])(
    'rejects %s',
    (text) => {
      expect(isWebAddress(text)).toBe(false);
    },
  );
});
