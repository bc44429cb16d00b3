import type { Database, Tx } from '../../src/store/db/tx.ts';
import { recordAction } from '../../src/store/ops/actions.ts';
import type { ApiContext, Caller } from '../context.ts';
import type { AnswerDeps } from './answer-deps.ts';

/** A configuration write of an account for the audit trail. */
interface RecordedWrite {
  /** A dotted name, such as `webhook.update`. */
  action: string;
  /** The id of the written object. */
  target: string;
  /** The fields that the request named, without their values, which may be secrets. */
  fields: readonly string[];
}

type RecordDeps = Pick<AnswerDeps, 'db' | 'now'>;

/** Stores a row of the audit trail in the transaction of the write. */
export async function recordWrite(
  tx: Tx,
  { now }: Pick<RecordDeps, 'now'>,
  ctx: ApiContext,
  { accountId, keyId }: Caller,
  { action, target, fields }: RecordedWrite,
): Promise<void> {
  const { requestId } = ctx.state;
  const who = { source: 'api', actor: keyId, accountId, address: '' } as const;
  await recordAction(tx, { ...who, action, target, status: 'done', result: fields.join(', '), requestId }, now());
}

/** The database for a write in a transaction of its own: the transaction that finds the object also stores the row. */
export function recordingDatabase(
  deps: RecordDeps,
  ctx: ApiContext,
  caller: Caller,
  write: RecordedWrite,
): Pick<Database, 'transaction'> {
  return {
    transaction: (work) =>
      deps.db.transaction(async (tx) => {
        const found = await work(tx);
        if (found) await recordWrite(tx, deps, ctx, caller, write);
        return found;
      }),
  };
}
