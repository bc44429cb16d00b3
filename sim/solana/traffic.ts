import { RandomStream } from '../random.ts';
import type { Chain, TokenAccount, TransactionVersion } from './chain.ts';
import { addressOf, type SimToken, SOL_MINT } from './tokens.ts';

const TRAFFIC_DOMAIN = 73;
const SOL = 1_000_000_000n;
const PEOPLE = 4;
/** Mean seconds per transaction. */
const SECONDS_PER_TRANSACTION = 4;

/** The accounts of the chain: people with some of every token, and a pool for swaps. */
export interface Population {
  readonly people: readonly string[];
  readonly pool: string;
}

export function populate(chain: Chain, tokens: readonly SimToken[], seed: number): Population {
  const people = Array.from({ length: PEOPLE }, (_, no) => addressOf(seed, 3, no));
  const pool = addressOf(seed, 4);
  for (const [no, address] of [...people, pool].entries()) {
    const share = address === pool ? 10_000n : BigInt(no + 1);
    chain.endow(address, share * 50n * SOL);
    for (const token of tokens) {
      if (token.mint === SOL_MINT && address !== pool) continue;
      const units = token.decimals === 0 ? 3n : 1_000n * 10n ** BigInt(token.decimals);
      chain.endowTokens(address, token, share * units);
    }
  }
  return { people, pool };
}

type Kind = 'sol' | 'token' | 'buy' | 'sell' | 'wrap' | 'unwrap' | 'failed' | 'fresh' | 'mention';
const KINDS: readonly Kind[] = [
  'sol',
  'token',
  'token',
  'buy',
  'buy',
  'sell',
  'wrap',
  'unwrap',
  'failed',
  'fresh',
  'mention',
];

/** The newest version of the traffic, and its share in millionths. */
export interface NewestVersion {
  readonly version: 1 | 2;
  readonly perMillion: number;
}

/** About the share on mainnet in autumn 2026. */
export const NEWEST_VERSION: NewestVersion = { version: 1, perMillion: 400_000 };
const MAX_PRIORITY_FEE = 10;

/** Plays one second: a pure function of the seed, the second and the balances. At most one transaction. */
export function playSecond(
  chain: Chain,
  { people, pool }: Population,
  tokens: readonly SimToken[],
  seed: number,
  second: number,
  newest: NewestVersion = NEWEST_VERSION,
): void {
  const random = new RandomStream(seed, TRAFFIC_DOMAIN, second);
  if (random.below(SECONDS_PER_TRANSACTION) !== 0) return;
  play(chain, { people, pool }, tokens, random, second, newest);
}

/** One draw decides the version and the priority fee. */
function versionBy(draw: number, { version, perMillion }: NewestVersion): TransactionVersion {
  if (draw < perMillion) return version;
  return draw % 2 === 0 ? 0 : 'legacy';
}

/** One random transaction; none when the chosen person has too little left. */
function play(
  chain: Chain,
  { people, pool }: Population,
  tokens: readonly SimToken[],
  random: RandomStream,
  second: number,
  newest: NewestVersion = NEWEST_VERSION,
): void {
  const person = random.pick(people);
  const other = random.pick(people.filter((each) => each !== person));
  const token = random.pick(tokens.filter(({ mint }) => mint !== SOL_MINT));
  const kind = random.pick(KINDS);
  const draw = random.below(1_000_000);
  const lamports = BigInt(random.between(1, 400_000_000));
  if (chain.balanceOf(person) < SOL) return;
  const own = (owner: string, mint = token.mint) => accountOf(chain, owner, mint);
  const part = (account: TokenAccount | undefined) =>
    ((account?.amount ?? 0n) * BigInt(random.between(0, 200))) / 1000n;
  const mine = own(person);
  const pools = own(pool);
  chain.execute({
    second,
    payer: person,
    version: versionBy(draw, newest),
    priorityFee: BigInt(draw % MAX_PRIORITY_FEE),
    fails: kind === 'failed',
    names: kind === 'mention' ? [other] : [],
    work(steps) {
      switch (kind) {
        case 'sol':
          return steps.sol(person, other, lamports);
        case 'token': {
          const theirs = own(other) ?? steps.create(person, other, token);
          return mine && steps.token(mine, theirs, part(mine));
        }
        case 'buy':
        case 'failed': {
          steps.sol(person, pool, lamports);
          return pools && steps.token(pools, mine ?? steps.create(person, person, token), part(pools) / 100_000n);
        }
        case 'sell': {
          if (!mine || !pools) return;
          steps.token(mine, pools, part(mine));
          return steps.sol(pool, person, lamports);
        }
        case 'wrap': {
          const account = own(person, SOL_MINT) ?? steps.create(person, person, solOf(tokens));
          return steps.wrap(person, account, lamports);
        }
        case 'unwrap': {
          const account = own(person, SOL_MINT);
          return account && steps.close(account, person);
        }
        case 'fresh': {
          // Opened, used and closed within the transaction: it is in neither list of balances.
          const account = steps.create(person, person, solOf(tokens));
          steps.wrap(person, account, lamports);
          return steps.close(account, person);
        }
        case 'mention':
          return;
      }
    },
  });
}

function solOf(tokens: readonly SimToken[]): SimToken {
  const token = tokens.find(({ mint }) => mint === SOL_MINT);
  if (token === undefined) throw new RangeError('no SOL among the tokens');
  return token;
}

function accountOf(chain: Chain, owner: string, mint: string): TokenAccount | undefined {
  return chain.accountsOf(owner).find((account) => account.token.mint === mint);
}
