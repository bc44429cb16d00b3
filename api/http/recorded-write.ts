import type { ApiJson } from '../../src/domain/values/api-json.ts';
import type { Database, Tx } from '../../src/store/db/tx.ts';
import { recordAction } from '../../src/store/ops/actions.ts';
import type { ApiContext, Caller } from '../context.ts';
import { callerOf } from '../middleware/authenticate.ts';
import type { AnswerDeps } from './deps.ts';

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

/** Log field names by id prefix. */
const FIELD_OF_PREFIX: Readonly<Record<string, string>> = {
  alert: 'alertId',
  wh: 'webhookId',
  dlv: 'deliveryId',
  evt: 'eventId',
  wal: 'walletId',
};
/** Other logged fields of an answer. Secrets and receiver addresses, which may contain secrets, are never logged. */
const LOGGED_FIELDS = ['tokenMint', 'condition', 'status', 'recovered', 'alertsChanged', 'venue'];

/**
 * Logs one line per completed write: account, key, operation and ids. `answered` is absent for a replayed answer. Ids are recognised
 * by their form, in the path and in the answer.
 */
export function logWrite(
  ctx: ApiContext,
  operation: string,
  params: Readonly<Record<string, string>>,
  answered: { data: ApiJson } | undefined,
): void {
  const { accountId, keyId } = callerOf(ctx);
  const data = isRecord(answered?.data) ? answered.data : {};
  const fields = LOGGED_FIELDS.flatMap((name) => (isPlain(data[name]) ? [[name, data[name]]] : []));
  ctx.state.log.info(
    {
      operation,
      accountId: String(accountId),
      keyId,
      ...idsIn(Object.values(params)),
      ...idsIn(Object.values(data)),
      ...Object.fromEntries(fields),
      ...(answered === undefined && { isReplay: true }),
    },
    'account write',
  );
}

function idsIn(values: readonly unknown[]): Record<string, string> {
  return Object.fromEntries(
    values.flatMap((value) => {
      const prefix = typeof value === 'string' ? /^([a-z]+)_[0-9a-f-]{36}$/.exec(value)?.[1] : undefined;
      const field = prefix === undefined ? undefined : FIELD_OF_PREFIX[prefix];
      return field === undefined ? [] : [[field, value as string]];
    }),
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isPlain(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}
