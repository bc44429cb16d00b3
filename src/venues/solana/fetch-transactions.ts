import { mayBeOfMember, type VenueError } from '../errors.ts';
import type { BatchRequest } from '../http/http.ts';
import { rejectMembers } from '../http/member-batches.ts';
import type { CallContext, RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import { REJECTED_FOR_VERSION, type WalletTransaction } from '../wallet-port.ts';
import type { Waiting } from './activity-position.ts';
import { parseTransaction } from './parse-transaction.ts';
import type { RpcClient } from './rpc-client.ts';
import { FORBIDDEN, METHOD_NOT_FOUND, NOT_AVAILABLE, RpcError, UNSUPPORTED_VERSION } from './rpc-error.ts';

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
 * Reads these transactions from their owner's point of view, up to this transaction version, after the node listed them. A transaction that
 * the node refuses for its version is rejected. One whose request fails is rejected too, and stays missing: it is asked for again at its
 * retry time. The others are read.
 */
export async function readTransactions(
  client: RpcClient,
  owner: string,
  listed: readonly ListedTransaction[],
  version: number,
  { signal, now }: CallContext,
): Promise<ReadTransactions> {
  const asked = await client.transactions.ask(
    listed.map(({ signature }) => signature),
    ([signature = ''], request) => fetchOne(client, signature, version, signal, request),
    { size: 1, atOnce: AT_ONCE, isAnswering: true, isOfRoute },
  );
  // Several that fail in a row may be the fault of the node: unread ones wait where it served others, and the page fails where it did not.
  if (asked.fault && (asked.answers.length === 0 || !mayBeOfMember(asked.fault))) throw asked.fault;
  const rejected = rejectMembers('wallets', asked.refused, now());
  const read: ReadTransactions = { records: [], rejected, missing: [], done: [], touched: [] };
  const answers = new Map(asked.answers.map(({ members: [signature], answer }) => [signature, answer]));
  for (const each of listed) add(read, { address: owner, version }, each, answers.get(each.signature) ?? null);
  return read;
}

/** The node refuses this client, or does not have the method. */
function isOfRoute(error: VenueError): boolean {
  return error.statusCode === FORBIDDEN || (error instanceof RpcError && error.rpcCode === METHOD_NOT_FOUND);
}

async function fetchOne(
  client: RpcClient,
  signature: string,
  version: number,
  signal: AbortSignal,
  request: BatchRequest,
): Promise<Answer> {
  try {
    const raw = await client.getTransaction(signature, version, signal, request);
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
