/** Which addresses a venue's wallets have; a venue that is not here has none that can be watched. */
const FORMS: Readonly<Record<string, { read(text: string): string | null; hint: string }>> = {
  polymarket: {
    read: (text) => (/^0x[0-9a-f]{40}$/i.test(text) ? text.toLowerCase() : null),
    hint: 'must be 0x and 40 hexadecimal digits: the proxy wallet that the profile shows',
  },
  solana: {
    read: (text) => (base58Length(text) === 32 ? text : null),
    hint: 'must be the base58 text of 32 bytes',
  },
};

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
/** 32 bytes have 32 to 44 digits. */
const MAX_BASE58_DIGITS = 44;

export type WalletAddress = { ok: true; address: string } | { ok: false; problem: string };

/**
 * The one spelling of an address under which a venue's wallet is kept: hexadecimal digits in lower case, base58 as it came,
 * for there case is meaning.
 */
export function readWalletAddress(venue: string, text: string): WalletAddress {
  const form = Object.hasOwn(FORMS, venue) ? FORMS[venue] : undefined;
  if (!form) return { ok: false, problem: 'wallets of this venue cannot be watched' };
  const address = form.read(text);
  return address === null ? { ok: false, problem: form.hint } : { ok: true, address };
}

/** How many bytes a base58 text holds; null when it is none. */
function base58Length(text: string): number | null {
  if (text === '' || text.length > MAX_BASE58_DIGITS) return null;
  let value = 0n;
  for (const character of text) {
    const digit = BASE58.indexOf(character);
    if (digit === -1) return null;
    value = value * 58n + BigInt(digit);
  }
  // Each leading 1 is a byte of zero.
  const zeros = text.length - text.replace(/^1+/, '').length;
  const hex = value === 0n ? '' : value.toString(16);
  return zeros + Math.ceil(hex.length / 2);
}
