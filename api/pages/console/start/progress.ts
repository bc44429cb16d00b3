import type { ParameterizedContext } from 'koa';
import { type FirstSteps, readFirstSteps } from '../../../../src/store/accounts/first-steps.ts';
import type { Database } from '../../../../src/store/db/tx.ts';
import type { ApiState } from '../../../context.ts';
import type { ConsoleSession } from '../../kit/session.ts';
import { startPath } from '../layout.ts';

type Context = ParameterizedContext<ApiState>;
type Caller = Pick<ConsoleSession['caller'], 'accountId' | 'scopes'>;

export const START_PATH = '/start';
/** A key without one of them cannot take the steps. */
const NEEDED_SCOPES = ['markets:read', 'webhooks', 'alerts'];

/**
 * How far this browser is with the first steps of an account: `begun` when it has shown them, `looked` when it then opened a market,
 * `over` when it has shown that all are done, and `skipped`. Everything else is a fact of the account.
 */
type Stage = 'begun' | 'looked' | 'over' | 'skipped';
const STAGES: readonly string[] = ['begun', 'looked', 'over', 'skipped'] satisfies Stage[];
const COOKIE = 'oddswire_first_steps';
const YEAR_SECONDS = 31_536_000;

/** The stage of this account in this browser; undefined before the first step, and when the cookie is of another account. */
export function stageOf(ctx: Context, { accountId }: Pick<Caller, 'accountId'>): Stage | undefined {
  const [account, stage = ''] = (ctx.cookies.get(COOKIE) ?? '').split('.');
  return account === String(accountId) && isStage(stage) ? stage : undefined;
}

function isStage(text: string): text is Stage {
  return STAGES.includes(text);
}

export function setStage(ctx: Context, { accountId }: Pick<Caller, 'accountId'>, stage: Stage): void {
  const attributes = `Path=/; HttpOnly; SameSite=Strict; Max-Age=${YEAR_SECONDS}`;
  ctx.append('Set-Cookie', `${COOKIE}=${accountId}.${stage}; ${attributes}`);
}

/** The first page of a session: the first steps of an account that has none of them, until all are done, else that of its scopes. */
export async function firstPage(ctx: Context, db: Database, caller: Caller): Promise<string> {
  const other = startPath(caller.scopes);
  const stage = stageOf(ctx, caller);
  if (stage === 'over' || stage === 'skipped' || !NEEDED_SCOPES.every((scope) => caller.scopes.includes(scope)))
    return other;
  if (stage !== undefined) return START_PATH;
  const { hasAlert, hasListened, hasWebhook } = await readFirstSteps(db, caller.accountId);
  return hasAlert || hasListened || hasWebhook ? other : START_PATH;
}

/** Which steps are done. */
export interface Progress {
  hasLooked: boolean;
  receives: 'webhook' | 'listen' | undefined;
  hasAlert: boolean;
}

export function progressOf({ hasAlert, hasListened, hasWebhook }: FirstSteps, stage: Stage | undefined): Progress {
  const receives = hasWebhook ? 'webhook' : hasListened ? 'listen' : undefined;
  return { hasLooked: stage === 'looked' || stage === 'over', receives, hasAlert };
}

export function isComplete({ hasLooked, receives, hasAlert }: Progress): boolean {
  return hasLooked && receives !== undefined && hasAlert;
}
