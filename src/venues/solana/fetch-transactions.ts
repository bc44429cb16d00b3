import type { RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { REJECTED_FOR_VERSION, type WalletTransaction } from '../wallet-port.ts';
import type { Waiting } from './activity-position.ts';
import { parseTransaction } from './parse-transaction.ts';
import type { RpcClient } from './rpc-client.ts';
import { NOT_AVAILABLE, RpcError, UNSUPPORTED_VERSION } from './rpc-error.ts';

export type ListedTransaction = Waiting;

interface ReadTransactions {
  records: WalletTransaction[];
  rejected: RejectedRecord[];
  /** Listed, and unavailable now. */
  missing: Waiting[];
  /** Read, or permanently rejected, with their slots. */
  done: [string, number][];
  /** The owner's token accounts in them. */
  touched: string[];
}

/** Requests of one page in flight at once; the host's budget sets the pace. */
const AT_ONCE = 4;

type Answer = { raw: unknown } | { refused: RpcError } | null;

/**
 * Reads these transactions from their owner's point of view, up to this transaction version. A transaction that the node refuses
 * individually is rejected; the others are read.
 */
export async function readTransactions(
  client: RpcClient,
  owner: string,
  listed: readonly ListedTransaction[],
  version: number,
  signal: AbortSignal,
): Promise<ReadTransactions> {
  const read: ReadTransactions = { records: [], rejected: [], missing: [], done: [], touched: [] };
  for (let start = 0; start < listed.length; start += AT_ONCE) {
    const part = listed.slice(start, start + AT_ONCE);
    const answers = await Promise.all(part.map(({ signature }) => fetchOne(client, signature, version, signal)));
    for (const [index, each] of part.entries()) add(read, { address: owner, version }, each, answers[index] ?? null);
  }
  return read;
}

async function fetchOne(client: RpcClient, signature: string, version: number, signal: AbortSignal): Promise<Answer> {
  try {
    const raw = await client.getTransaction(signature, version, signal);
    return raw === null ? null : { raw };
  } catch (error) {
    if (error instanceof RpcError && error.rpcCode === UNSUPPORTED_VERSION) return { refused: error };
    if (error instanceof RpcError && error.code !== 'rate_limited' && NOT_AVAILABLE.has(error.rpcCode)) return null;
    throw error;
  }
}

function add(
  read: ReadTransactions,
  reader: { address: string; version: number },
  listed: ListedTransaction,
  answer: Answer,
): void {
  const { signature, slot, atMs } = listed;
  if (answer === null) {
    read.missing.push(listed);
    return;
  }
  read.done.push([signature, slot]);
  if ('refused' in answer) {
    const rejection = { reason: REJECTED_FOR_VERSION, detail: answer.refused.message };
    read.rejected.push(rejectRecord('wallets', listed, rejection, signature));
    return;
  }
  const parsed = parseTransaction(answer.raw, { ...reader, signature, fallbackMs: atMs });
  if (!parsed.ok) {
    read.rejected.push(rejectRecord('wallets', answer.raw, parsed.rejection, signature));
    return;
  }
  read.records.push(parsed.value.record);
  read.touched.push(...parsed.value.tokenAccounts);
}
