import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';

/** The parameters of scrypt. */
interface PasswordCost {
  readonly N: number;
  readonly r: number;
  readonly p: number;
}

/** 16 MiB and some tenths of a second (OWASP, Password Storage): a stored hash names its cost, so a release can raise it. */
const COST: PasswordCost = { N: 2 ** 14, r: 8, p: 5 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
const STORED = /^scrypt\$(\d{1,7})\$(\d{1,2})\$(\d{1,2})\$([\w-]{22})\$([\w-]{43})$/;

/** The stored form of no password, as expensive to compare as any other of the cost. */
export function noPassword(cost: PasswordCost = COST): string {
  return storedForm(Buffer.alloc(SALT_BYTES), Buffer.alloc(HASH_BYTES), cost);
}

/** The stored form of a password: `scrypt$N$r$p$salt$hash`. */
export async function hashPassword(password: string, cost: PasswordCost = COST): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  return storedForm(salt, await derive(password, salt, cost), cost);
}

/** Whether `password` is the stored one. False for a text that `hashPassword` did not make. */
export async function isPassword(password: string, stored: string): Promise<boolean> {
  const [, N, r, p, salt = '', hash = ''] = STORED.exec(stored) ?? [];
  if (N === undefined) return false;
  const cost = { N: Number(N), r: Number(r), p: Number(p) };
  return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64url'), cost), Buffer.from(hash, 'base64url'));
}

/** One text can have several encodings in Unicode: keyboards differ in their choice. */
function derive(password: string, salt: Buffer, cost: PasswordCost): Promise<Buffer> {
  const options: ScryptOptions = { ...cost, maxmem: 256 * cost.N * cost.r };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, HASH_BYTES, options, (error, key) =>
      error ? reject(error) : resolve(key),
    );
  });
}

function storedForm(salt: Buffer, hash: Buffer, { N, r, p }: PasswordCost): string {
  return ['scrypt', N, r, p, salt.toString('base64url'), hash.toString('base64url')].join('$');
}
