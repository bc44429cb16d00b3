import { encodeBase58 } from '../../src/domain/values/base58.ts';
import { hashHex } from '../random.ts';

export const TOKEN_PROGRAM = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA';
export const TOKEN_2022_PROGRAM = 'TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb';
export const SYSTEM_PROGRAM = '11111111111111111111111111111111';
export const SOL_MINT = 'So11111111111111111111111111111111111111112';
/** The rent of a token account, lamports. */
export const RENT_LAMPORTS = 2_039_280n;

/** A token of the simulated chain; without `usd` Jupiter has no reliable price for it. */
export interface SimToken {
  readonly mint: string;
  readonly symbol: string;
  readonly name: string;
  readonly decimals: number;
  readonly programId: string;
  readonly usd?: number;
}

const ADDRESS_DOMAIN = 71;
const WORDS_OF_A_KEY = 8;
const WORDS_OF_A_SIGNATURE = 16;

/** A made-up public key, the same for equal arguments. */
export function addressOf(...key: readonly number[]): string {
  return encodeBase58(Buffer.from(hashHex(WORDS_OF_A_KEY, ADDRESS_DOMAIN, ...key), 'hex'));
}

export function signatureOf(...key: readonly number[]): string {
  return encodeBase58(Buffer.from(hashHex(WORDS_OF_A_SIGNATURE, ADDRESS_DOMAIN + 1, ...key), 'hex'));
}

/** The tokens of the chain: of both programs, one without a price, one without decimals. */
export function tokensOf(seed: number): readonly SimToken[] {
  const made = (no: number, token: Omit<SimToken, 'mint'>): SimToken => ({ mint: addressOf(seed, 1, no), ...token });
  return [
    { mint: SOL_MINT, symbol: 'SOL', name: 'Wrapped SOL', decimals: 9, programId: TOKEN_PROGRAM, usd: 147.48 },
    made(1, { symbol: 'SIMUSD', name: 'Sim Dollar', decimals: 6, programId: TOKEN_PROGRAM, usd: 0.9999 }),
    made(2, { symbol: 'WOOF', name: 'Woof', decimals: 5, programId: TOKEN_PROGRAM, usd: 0.000012345 }),
    made(3, { symbol: 'NEWT', name: 'Newt of 2022', decimals: 8, programId: TOKEN_2022_PROGRAM, usd: 3.25 }),
    made(4, { symbol: 'CARD', name: 'Card No. 4', decimals: 0, programId: TOKEN_2022_PROGRAM }),
  ];
}
