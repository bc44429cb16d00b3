import { VenueError } from '../errors.ts';
import type { RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { SOLANA } from './hosts.ts';
import { mintOf, parseTokenAccount, type TokenAccount } from './parse-token-accounts.ts';
import { type RpcClient, TOKEN_PROGRAMS } from './rpc-client.ts';

export interface TokenAccounts {
  /** The accounts of both programs are of this slot, or a little later. */
  slot: number;
  accounts: TokenAccount[];
  /** Unreadable accounts; `recordId` is the mint, if that is readable. */
  rejected: RejectedRecord[];
}

/** An owner's accounts in both token programs. */
export async function readTokenAccounts(client: RpcClient, owner: string, signal: AbortSignal): Promise<TokenAccounts> {
  const found: TokenAccounts = { slot: Number.MAX_SAFE_INTEGER, accounts: [], rejected: [] };
  for (const programId of TOKEN_PROGRAMS) {
    const { slot, value } = await client.listTokenAccounts(owner, programId, signal);
    if (!Array.isArray(value)) {
      throw new VenueError(SOLANA, 'invalid_payload', 'token accounts: expected a list', { retryable: true });
    }
    found.slot = Math.min(found.slot, slot);
    for (const row of value) {
      const read = parseTokenAccount(row);
      if (read.ok) found.accounts.push(read.value);
      else found.rejected.push(rejectRecord('wallets', row, read.rejection, mintOf(row)));
    }
  }
  return found;
}
