const ALPHABET = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const VALUES: ReadonlyMap<string, bigint> = new Map([...ALPHABET].map((digit, value) => [digit, BigInt(value)]));
const BASE = 58n;
/** The longest values in base58, signatures of 64 bytes, have at most 88 digits. */
const MAX_DIGITS = 88;

/** The bytes of a base58 text (Bitcoin's alphabet, which Solana uses); null when the text is invalid or too long. */
function decodeBase58(text: string): Uint8Array | null {
  if (text.length > MAX_DIGITS) return null;
  let number = 0n;
  for (const digit of text) {
    const value = VALUES.get(digit);
    if (value === undefined) return null;
    number = number * BASE + value;
  }
  const hex = number === 0n ? '' : number.toString(16);
  // Each leading 1 is a zero byte, which the number cannot hold.
  const zeros = text.length - text.replace(/^1+/, '').length;
  return Uint8Array.from([
    ...new Uint8Array(zeros),
    ...Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex'),
  ]);
}

export function encodeBase58(bytes: Uint8Array): string {
  let number = bytes.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
  let text = '';
  for (; number > 0n; number /= BASE) text = `${ALPHABET[Number(number % BASE)]}${text}`;
  const zeros = bytes.findIndex((byte) => byte !== 0);
  return '1'.repeat(zeros === -1 ? bytes.length : zeros) + text;
}

/** Whether a text is a Solana public key and so may be an address or a mint: case-sensitive base58 of 32 bytes. */
export function isPublicKey(text: string): boolean {
  return decodeBase58(text)?.length === 32;
}
