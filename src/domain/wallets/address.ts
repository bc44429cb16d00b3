import { isPublicKey } from '../values/base58.ts';

interface AddressForm {
  read(text: string): string | null;
  hint: string;
  /** An address of this form. */
  example: string;
}

/** The address form of each venue's wallets; wallets of other venues cannot be watched. */
const FORMS: Readonly<Record<string, AddressForm>> = {
  polymarket: {
    read: (text) => (/^0x[0-9a-f]{40}$/i.test(text) ? text.toLowerCase() : null),
    hint: 'must be 0x and 40 hexadecimal digits: the proxy wallet that the profile shows',
    example: '0x56687bf447db6ffa42ffe2204a05edaa20f55839',
  },
  solana: {
    read: (text) => (isPublicKey(text) ? text : null),
    hint: 'must be the base58 text of 32 bytes',
    example: 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263',
  },
};

type WalletAddress = { ok: true; address: string } | { ok: false; problem: string };

const formOf = (venue: string) => (Object.hasOwn(FORMS, venue) ? FORMS[venue] : undefined);

/** The canonical spelling of a wallet address: hexadecimal digits in lower case; base58 unchanged, because it is case-sensitive. */
export function readWalletAddress(venue: string, text: string): WalletAddress {
  const form = formOf(venue);
  if (!form) return { ok: false, problem: 'wallets of this venue cannot be watched' };
  const address = form.read(text);
  return address === null ? { ok: false, problem: form.hint } : { ok: true, address };
}

/** An address of the form of a venue; undefined for a venue whose wallets cannot be watched. */
export function exampleAddress(venue: string): string | undefined {
  return formOf(venue)?.example;
}
