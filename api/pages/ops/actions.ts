import { asError } from '../../../src/domain/values/errors.ts';
import { operatorSessions } from '../../../src/store/accounts/sessions.ts';
import type { Tx } from '../../../src/store/db/tx.ts';
import { type AuditEntry, finishAction, recordAction } from '../../../src/store/ops/actions.ts';
import { ApiError } from '../../errors.ts';
import type { Assets } from '../kit/assets.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { type ActionOutcome, createPageRouter, type PageRequest, type PageRouter } from '../kit/router.ts';
import type { Operator, OperatorSession } from '../kit/session.ts';
import { sessionOf } from './access/session.ts';
import { page, type Section } from './layout.ts';

/** A request of an operator or a viewer. */
export type OpsRequest = PageRequest<OperatorSession>;

export interface ActionRequest extends OpsRequest {
  /** The fields of the form. */
  form: URLSearchParams;
}

/** The result of an action: the audit log keeps `result`, and the next page shows it. */
type AuditedOutcome = ActionOutcome & {
  /** A sentence without secrets. */
  result: string;
  /** Wake-ups, run after the commit. Must not throw. */
  afterCommit?: () => void;
};

interface ActionBase {
  path: string;
  section: Section;
  /** A dotted name for the audit log: `key.revoke`. */
  action: string;
  /** The target of the action, for the audit log. */
  target(request: ActionRequest): string;
}

/** A change by SQL. One transaction holds the change and its audit entry, and may run again after a deadlock. */
interface TransactionAction extends ActionBase {
  /** @throws ApiError to roll back; the audit log records `refused`. */
  inTransaction(tx: Tx, request: ActionRequest): Promise<AuditedOutcome>;
}

/** Any other change: the audit log records its start and its end. */
interface PlainAction extends ActionBase {
  run(request: ActionRequest): Promise<AuditedOutcome>;
}

/** The action of a form. Absent for pages and data, which viewers may read. */
interface Rule {
  action?: string;
}

/** Registers the pages, for viewers and operators, and the audited actions, for operators only. */
export interface OpsRouter extends Omit<PageRouter<OpsRequest, Section, Rule>, 'action'> {
  action(definition: TransactionAction | PlainAction): void;
}

export function createOpsRouter(deps: AuditDeps, assets: Assets): OpsRouter {
  const router = createPageRouter<OperatorSession, OpsRequest, Section, Rule>(deps, {
    sessionOf,
    requestOf: (request) => request,
    async admit(request, { action }) {
      if (action !== undefined) await requireOperator(deps, auditedOf(request, action, request.path));
    },
    show: (content) => page(assets, content),
    setFlash: operatorSessions.setFlash,
  });
  return {
    ...router,
    action(definition) {
      const { path, section, action, target } = definition;
      router.action({
        path,
        section,
        action,
        async run(request) {
          const audited = auditedOf(request, action, target(request));
          const outcome =
            'run' in definition
              ? await runAudited(deps, audited, () => definition.run(request))
              : await inAuditedTransaction(deps, audited, (tx) => definition.inTransaction(tx, request));
          outcome.afterCommit?.();
          return outcome;
        },
      });
    },
  };
}

function auditedOf({ session: { operator }, requestId }: OpsRequest, action: string, target: string): AuditedAction {
  return { action, target, operator, requestId };
}

/** An action before it runs. */
interface AuditedAction {
  action: string;
  target: string;
  operator: Operator;
  requestId: string;
}

type AuditDeps = Pick<PageDeps, 'db' | 'now' | 'log'>;

/** Admits operators and records the attempts of viewers. @throws ApiError `insufficient_scope` */
export async function requireOperator(deps: AuditDeps, action: AuditedAction): Promise<void> {
  if (action.operator.role === 'operator') return;
  const error = new ApiError('insufficient_scope', 'viewers can read all pages but cannot change anything');
  await writeFailure(deps, action, error);
  throw error;
}

/** Runs `work` and records it in the same transaction, so that neither exists without the other. */
export async function inAuditedTransaction<T extends { result: string }>(
  deps: AuditDeps,
  action: AuditedAction,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await deps.db.transaction(async (tx) => {
      const outcome = await work(tx);
      await recordAction(tx, { ...entryOf(action), status: 'done', result: outcome.result }, deps.now());
      return outcome;
    });
  } catch (error) {
    await writeFailure(deps, action, error);
    throw error;
  }
}

/** Records the start of `work`, runs it, and records its result: `failed` also when it returns a failure instead of throwing. */
export async function runAudited<T extends { result: string; hasFailed?: boolean }>(
  deps: AuditDeps,
  action: AuditedAction,
  work: () => Promise<T>,
): Promise<T> {
  const pk = await recordAction(deps.db, { ...entryOf(action), status: 'started', result: '' }, deps.now());
  let outcome: T;
  try {
    outcome = await work();
  } catch (error) {
    await afterFailure(deps, error, (status, result) => finishAction(deps.db, pk, status, result));
    throw error;
  }
  await finishAction(deps.db, pk, outcome.hasFailed ? 'failed' : 'done', outcome.result);
  return outcome;
}

function writeFailure(deps: AuditDeps, action: AuditedAction, error: unknown): Promise<void> {
  return afterFailure(deps, error, async (status, result) => {
    await recordAction(deps.db, { ...entryOf(action), status, result }, deps.now());
  });
}

/** A failed write to the audit log must not hide the original failure. */
async function afterFailure(
  deps: AuditDeps,
  thrown: unknown,
  write: (status: 'refused' | 'failed', result: string) => Promise<void>,
): Promise<void> {
  const isRejection = thrown instanceof ApiError && thrown.status < 500;
  const result = isRejection ? `${thrown.code}: ${thrown.message}` : asError(thrown).name;
  try {
    await write(isRejection ? 'refused' : 'failed', result);
  } catch (error) {
    deps.log.warn({ err: asError(error) }, 'the audit log has no entry for a failed operator action');
  }
}

function entryOf({ action, target, operator, requestId }: AuditedAction): Omit<AuditEntry, 'status' | 'result'> {
  const { name, role, sessionId, address } = operator;
  return { action, target, actor: name, role, sessionId, address, requestId };
}
