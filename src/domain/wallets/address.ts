import { isPublicKey } from '../values/base58.ts';

/** The address form of each venue's wallets; wallets of other venues cannot be watched. */
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

/** The canonical spelling of a wallet address: hexadecimal digits in lower case; base58 unchanged, because it is case-sensitive. */
export function readWalletAddress(venue: string, text: string): WalletAddress {
  const form = Object.hasOwn(FORMS, venue) ? FORMS[venue] : undefined;
  if (!form) return { ok: false, problem: 'wallets of this venue cannot be watched' };
  const address = form.read(text);
  return address === null ? { ok: false, problem: form.hint } : { ok: true, address };
}
