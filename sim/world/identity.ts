import { hashHex, hashWord } from '../random.ts';

/** Ids shaped like the venue's own, each a pure function of the seed and a running number. */

const DOMAIN = {
  condition: 11,
  token: 12,
  question: 13,
  wallet: 14,
  transaction: 15,
  name: 17,
  group: 18,
  resolution: 19,
};
const TOKEN_FLOOR = 10n ** 76n;

/** `0x` + 64 hex. */
export function conditionIdOf(seed: number, marketNo: number): string {
  return `0x${hashHex(8, seed, DOMAIN.condition, marketNo)}`;
}

/**
 * `0x` + 62 hex: a condition of protocol V2. Its bytes are the module of binary markets, 18 of a hash, eight zeros and four with its
 * number in its event.
 */
export function conditionIdV2Of(seed: number, marketNo: number): string {
  return `0x01${hashHex(5, seed, DOMAIN.condition, marketNo).slice(0, 36)}${'0'.repeat(24)}`;
}

/** The 32 bytes in which some hosts write a condition of protocol V2; other ids already have them. */
export function wholeConditionId(conditionId: string): string {
  return conditionId.length === 64 ? `${conditionId}00` : conditionId;
}

/** An outcome of protocol V2, in decimal: the condition and one byte with the number of the outcome. */
export function positionIdOf(conditionId: string, outcomeIndex: 0 | 1): string {
  return BigInt(`${conditionId}0${outcomeIndex}`).toString();
}

/** A uint256 in decimal, 77 digits. */
export function tokenIdOf(seed: number, marketNo: number, outcomeIndex: number): string {
  const raw = BigInt(`0x${hashHex(8, seed, DOMAIN.token, marketNo, outcomeIndex)}`);
  return (TOKEN_FLOOR + (raw % (9n * TOKEN_FLOOR))).toString();
}

/** `0x` + 64 hex. */
export function questionIdOf(seed: number, marketNo: number): string {
  return `0x${hashHex(8, seed, DOMAIN.question, marketNo)}`;
}

/** The common id of the markets of one negative-risk event; its last byte is 00 as on chain. */
export function negRiskIdOf(seed: number, eventNo: number): string {
  return `0x${hashHex(8, seed, DOMAIN.group, eventNo).slice(0, 62)}00`;
}

/** Digits only, growing with the market's number. */
export function gammaIdOf(seed: number, marketNo: number): string {
  return String(2_400_000 + marketNo * 7 + (hashWord(seed, DOMAIN.condition, marketNo) % 7));
}

export function eventIdOf(eventNo: number): string {
  return String(90_000 + eventNo * 3);
}

/** One hash per taker order: all its fills share it. */
export function transactionHashOf(seed: number, orderNo: number): string {
  return `0x${hashHex(8, seed, DOMAIN.transaction, orderNo)}`;
}

/** The transaction of a change of a result. */
export function resolutionHashOf(seed: number, marketNo: number, eventNo: number): string {
  return `0x${hashHex(8, seed, DOMAIN.resolution, marketNo, eventNo)}`;
}

export interface Wallet {
  readonly address: string;
  readonly name: string;
  readonly pseudonym: string;
}

const ADJECTIVES = ['Frozen', 'Agitated', 'Spicy', 'Quiet', 'Brisk', 'Golden', 'Distant', 'Patient', 'Hollow', 'Rapid'];
const NOUNS = [
  'Technician',
  'Neighbour',
  'Harbor',
  'Falcon',
  'Ledger',
  'Meadow',
  'Pilot',
  'Anchor',
  'Lantern',
  'Drummer',
];
const HANDLES = ['baguette', 'moose', 'tidewater', 'quant', 'otter', 'parlay', 'granite', 'sundial', 'kite', 'walnut'];

/** A proxy wallet and its public names; a fifth of the wallets have no chosen name. */
export function walletOf(seed: number, walletNo: number): Wallet {
  const word = hashWord(seed, DOMAIN.name, walletNo);
  const named = word % 5 !== 0;
  return {
    address: `0x${hashHex(5, seed, DOMAIN.wallet, walletNo)}`,
    name: named ? `${HANDLES[word % 10]}${walletNo}` : '',
    pseudonym: `${ADJECTIVES[(word >>> 4) % 10]}-${NOUNS[(word >>> 8) % 10]}`,
  };
}
