import { expect, it } from 'vitest';
import { hashPassword, isPassword, noPassword } from '../../../../src/domain/values/password.ts';

it('a stored password has its cost and a salt of its own, and only the password opens it', async () => {
  const [one, two] = [await hashPassword('correct horse'), await hashPassword('correct horse')];
  expect(one).toMatch(/^scrypt\$16384\$8\$5\$[\w-]{22}\$[\w-]{43}$/);
  expect(one).not.toBe(two);
  expect(await isPassword('correct horse', one)).toBe(true);
  expect(await isPassword('correct horse ', one)).toBe(false);
  expect(await isPassword('', one)).toBe(false);
});

it('isPassword uses the stored cost', async () => {
  // Made by OpenSSL's scrypt with 16 zero bytes of salt.
  const cheap = 'scrypt$1024$8$1$AAAAAAAAAAAAAAAAAAAAAA$f84G3M8rqQXuJqTwqOgLlxhy6GTrCReyDypLOOVFRAM';
  expect(await isPassword('pleaseletmein', cheap)).toBe(true);
  expect(await isPassword('pleaseletmein', cheap.replace('$1024$', '$2048$'))).toBe(false);
});

it('isPassword ignores the encoding of a letter with an accent', async () => {
  expect(await isPassword('cafe\u0301', await hashPassword('caf\u00e9'))).toBe(true);
});

it('isPassword accepts nothing for the stored form of no password, or for another text', async () => {
  expect(noPassword()).toMatch(/^scrypt\$16384\$8\$5\$/);
  expect(await isPassword('', noPassword())).toBe(false);
  expect(await isPassword('', 'plain')).toBe(false);
});
