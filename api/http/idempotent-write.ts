import { createHash } from 'node:crypto';
import type { ApiJson } from '../../src/domain/values/api-json.ts';
import { claimIdempotencyKey, idempotencyOwner, keepIdempotentAnswer } from '../../src/store/accounts/idempotency.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import type { ApiContext, Caller } from '../context.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import type { AnswerDeps } from './deps.ts';
import { type AccountAnswer, accountText, sendAccountText } from './respond.ts';

/** 1 to 255 printable ASCII characters. */
const KEY = /^[\x20-\x7e]{1,255}$/;
const HEADER = 'idempotency-key';
/** The header of an answer that an earlier request made. */
export const REPLAYED = 'Idempotent-Replayed';

interface Done {
  /** Wake-ups, run after the commit. A crash before them loses nothing, because timers find the due work. */
  afterCommit?(): void;
}
/** The answer to a completed write. */
export type WriteAnswer<Data extends ApiJson = ApiJson> = AccountAnswer<Data> & Done;
/** An unfinished write of several transactions. The next transaction gets `progress`, in any process. */
export type WriteProgress = { progress: string } & Done;

/**
 * One transaction of a write, which changes state only through `tx`. It may run again after a deadlock, so every other effect
 * belongs in `afterCommit`. `progress` comes from the previous transaction and is absent for the first.
 * @throws ApiError to roll back and answer with this error.
 */
type Write = (tx: Tx, progress: string | undefined) => Promise<WriteAnswer | WriteProgress>;

interface WriteRequest {
  ctx: ApiContext;
  caller: Caller;
  /** The JSON value of the request, already checked. */
  body: unknown;
  /** The status of the answer. */
  status: 200 | 201 | 202;
  /** `key`: an answer with a secret of more rights than another key of the account may have. */
  replaysTo?: 'key' | undefined;
}

type OnceDeps = Pick<AnswerDeps, 'db' | 'secretBox' | 'decimalFormat'>;

/** An answer in the form that is sent. */
interface Prepared {
  status: number;
  text: string;
  location?: string;
}

/** The value stored under a key, sealed because answers contain secrets. `request` is a hash of the request. */
interface StoredOutcome {
  request: string;
  answer?: Prepared;
  progress?: string;
}

interface Step {
  answer?: Prepared;
  progress?: string;
  afterCommit?: (() => void) | undefined;
  isReplay?: true;
}

/**
 * Runs a write and answers the request; with an `Idempotency-Key` at most once in IDEMPOTENCY_HOURS. One transaction holds the claim
 * of the key, the write and the stored answer, so a crash leaves all of them or nothing. Each transaction of a longer write stores its
 * progress, and the next request with the key continues there. Failures are not stored.
 */
export async function answerOnce(request: WriteRequest, deps: OnceDeps, write: Write): Promise<void> {
  const given = readKey(request.ctx);
  const key = given === undefined || request.replaysTo === undefined ? given : `${request.caller.keyId} ${given}`;
  let progress: string | undefined;
  for (;;) {
    const before = progress;
    const step = await deps.db.transaction((tx) =>
      key === undefined ? runStep(tx, request, deps, write, before) : runKeyed(tx, key, request, deps, write),
    );
    step.afterCommit?.();
    if (step.answer) {
      if (step.isReplay) request.ctx.set(REPLAYED, 'true');
      sendAccountText(request.ctx, step.answer);
      return;
    }
    progress = step.progress;
  }
}

async function runStep(
  tx: Tx,
  { status }: WriteRequest,
  deps: OnceDeps,
  write: Write,
  progress: string | undefined,
): Promise<Step> {
  const made = await write(tx, progress);
  const { afterCommit } = made;
  if ('progress' in made) return { progress: made.progress, afterCommit };
  const text = accountText(made, deps);
  return {
    answer: { status: made.status ?? status, text, ...(made.location !== undefined && { location: made.location }) },
    afterCommit,
  };
}

async function runKeyed(tx: Tx, key: string, request: WriteRequest, deps: OnceDeps, write: Write): Promise<Step> {
  const { accountId } = request.caller;
  const owner = idempotencyOwner(accountId, key);
  const hash = hashOf(request);
  const claim = await claimIdempotencyKey(tx, accountId, key);
  if (claim.outcome === 'busy') {
    throw new ApiError('conflict', 'a request with this Idempotency-Key is in flight; retry later', {
      headers: { 'Retry-After': '1' },
    });
  }
  const stored =
    claim.outcome === 'stored' ? (JSON.parse(deps.secretBox.open(claim.sealed, owner)) as StoredOutcome) : undefined;
  if (stored && stored.request !== hash) {
    throw new ApiError('idempotency_mismatch', 'this Idempotency-Key was used with another path or body');
  }
  if (stored?.answer) return { answer: stored.answer, isReplay: true };

  const step = await runStep(tx, request, deps, write, stored?.progress);
  const { answer, progress } = step;
  const keep: StoredOutcome = { request: hash, ...(answer && { answer }), ...(progress !== undefined && { progress }) };
  await keepIdempotentAnswer(tx, accountId, key, deps.secretBox.seal(JSON.stringify(keep), owner));
  return step;
}

function readKey(ctx: ApiContext): string | undefined {
  const given = ctx.req.headersDistinct[HEADER];
  if (given === undefined) return undefined;
  const [key = '', ...more] = given;
  const path = `headers.${HEADER}`;
  if (more.length > 0) throw invalidRequest([{ path, message: 'must be given once' }]);
  if (!KEY.test(key)) throw invalidRequest([{ path, message: 'must be 1 to 255 printable ASCII characters' }]);
  return key;
}

/** Hashes method, path and body as a JSON value. Field order, white space and the spelling of numbers do not change the hash. */
function hashOf({ ctx, body }: WriteRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([ctx.method, ctx.path, body], sortedFields))
    .digest('base64url');
}

/** Recurses without a depth limit, because the schemas reject values that are nested too deep. */
function sortedFields(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
