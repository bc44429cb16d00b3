import { VenueError } from '../errors.ts';
import type { WalletBalance, WalletPage } from '../wallet-port.ts';
import { MintSums, parseLamports } from './amount.ts';
import { readTokenAccounts, type TokenAccounts } from './fetch-token-accounts.ts';
import { SOL_DECIMALS, SOL_MINT, SOLANA } from './hosts.ts';
import type { RpcClient } from './rpc-client.ts';

const MAX_TRIES = 3;

/**
 * All that an owner holds, in one page: native lamports and wrapped SOL as one mint, the accounts of one mint added up.
 * These are reads of several moments, and SOL that is wrapped between them would be counted twice or not at all: so the
 * lamports are read before and after, and only a look that nothing of the owner's moved under is taken.
 * @throws VenueError when the owner's lamports do not hold still, or a token account cannot be told apart.
 */
export async function readBalances(
  client: RpcClient,
  owner: string,
  signal: AbortSignal,
): Promise<WalletPage<WalletBalance>> {
  let before = await readLamports(client, owner, signal);
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const tokens = await readTokenAccounts(client, owner, signal);
    const after = await readLamports(client, owner, signal);
    if (before === after) {
      const { rejected } = tokens;
      return { records: balancesOf(after, tokens), rejected, position: null, more: false };
    }
    before = after;
  }
  throw unreadable('the balance changes too fast to be read');
}

/**
 * The sums by mint. The mint of an account that cannot be read is left out, for its sum would be wrong, and is named by
 * what was refused. When not even the mint can be read, no sum is certain.
 */
function balancesOf(lamports: bigint, { accounts, rejected }: TokenAccounts): WalletBalance[] {
  const nameless = rejected.find(({ recordId }) => recordId === undefined);
  if (nameless) throw unreadable(`a token account cannot be read: ${nameless.reason}, ${nameless.detail}`);
  const left = new Set(rejected.map(({ recordId }) => recordId));
  const sums = new MintSums();
  if (!left.has(SOL_MINT)) sums.add(SOL_MINT, lamports, SOL_DECIMALS);
  for (const { account, mint, raw, decimals } of accounts) {
    if (left.has(mint) || sums.add(mint, raw, decimals)) continue;
    throw unreadable(`token account ${account}: not the decimals of its mint`);
  }
  return sums.entries().map(toBalance);
}

function unreadable(message: string): VenueError {
  return new VenueError(SOLANA, 'invalid_payload', message, { retryable: true });
}

function toBalance({ mint, amount }: ReturnType<MintSums['entries']>[number]): WalletBalance {
  return { tokenMint: mint, amount, ...(mint === SOL_MINT && { tokenSymbol: 'SOL' }) };
}

async function readLamports(client: RpcClient, owner: string, signal: AbortSignal): Promise<bigint> {
  const { value } = await client.getBalance(owner, signal);
  const lamports = parseLamports(value);
  if (lamports !== null) return lamports;
  throw new VenueError(SOLANA, 'invalid_payload', 'getBalance: not a whole number below 2^53', { retryable: false });
}
