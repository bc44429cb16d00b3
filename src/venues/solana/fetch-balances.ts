import { VenueError } from '../errors.ts';
import type { WalletBalance, WalletPage } from '../wallet-port.ts';
import { MintSums, parseLamports } from './amount.ts';
import { readTokenAccounts, type TokenAccounts } from './fetch-token-accounts.ts';
import { SOL_DECIMALS, SOL_MINT, SOLANA } from './hosts.ts';
import type { RpcClient } from './rpc-client.ts';

const MAX_TRIES = 3;

/**
 * All balances of an owner, in one page: native lamports and wrapped SOL as one mint, the accounts of one mint added up. These reads happen
 * at several moments, and SOL that is wrapped between them would count twice or not at all. The lamports are therefore read before and
 * after, and the read is accepted only when they are equal.
 * @throws VenueError when the owner's lamports keep changing, or a token account is unreadable to its mint.
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
  throw unreadable('the balance changes during each read');
}

/**
 * The sums by mint. The mint of an unreadable account is skipped, because its sum would be wrong; its rejection names it. When even the
 * mint is unreadable, no sum is certain.
 */
function balancesOf(lamports: bigint, { accounts, rejected }: TokenAccounts): WalletBalance[] {
  const nameless = rejected.find(({ recordId }) => recordId === undefined);
  if (nameless) throw unreadable(`a token account cannot be read: ${nameless.reason}, ${nameless.detail}`);
  const left = new Set(rejected.map(({ recordId }) => recordId));
  const sums = new MintSums();
  if (!left.has(SOL_MINT)) sums.add(SOL_MINT, lamports, SOL_DECIMALS);
  for (const { account, mint, raw, decimals } of accounts) {
    if (left.has(mint) || sums.add(mint, raw, decimals)) continue;
    throw unreadable(`token account ${account}: its decimals differ from its mint`);
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
