import { isPublicKey } from '../values/base58.ts';

/** Which addresses a venue's wallets have; a venue that is not here has none that can be watched. */
const FORMS: Readonly<Record<string, { read(text: string): string | null; hint: string }>> = {
  polymarket: {
    read: (text) => (/^0x[0-9a-f]{40}$/i.test(text) ? text.toLowerCase() : null),
    hint: 'must be 0x and 40 hexadecimal digits: the proxy wallet that the profile shows',
  },
  solana: {
    read: (text) => (isPublicKey(text) ? text : null),
    hint: 'must be the base58 text of 32 bytes',
  },
};

type WalletAddress = { ok: true; address: string } | { ok: false; problem: string };

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
