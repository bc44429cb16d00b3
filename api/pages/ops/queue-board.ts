import type { Middleware, ParameterizedContext } from 'koa';
import type { OperatorRole } from '../../../src/store/ops/operators.ts';
import type { ApiState } from '../../context.ts';
import { ApiError } from '../../errors.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { type OpsOptions, sessionOf } from './access/session.ts';
import { requireOperator, runAudited } from './actions.ts';
import { findProblems, type Problems } from './problems/read.ts';

const BASE_PATH = '/ops/queues';

/** Tags that load files from another host: bull-board links a font service. */
const FOREIGN_TAGS = /<(link|script|img|iframe)\b[^>]*\b(?:href|src)=["']?(?:https?:)?\/\/[^>]*>(?:\s*<\/\1>)?/gi;

/** A link over the corner of the dashboard, which fills the window: it has the number of problems, and leads to their page. */
function backLink(text: string): string {
  return (
    '<a href="/ops" style="position:fixed;left:12px;bottom:44px;z-index:1000;padding:6px 12px;border:1px solid GrayText;' +
    `border-radius:6px;background:Canvas;color:CanvasText;font:14px system-ui,sans-serif;text-decoration:none">← Operator pages<br>${text}</a>`
  );
}

/**
 * bull-board under /ops/queues: viewers read, operators also write, and the audit log records each write. Its writes carry no form
 * token. Three rules block other sites: browsers send the cookie only with same-site requests, the headers of the site check the origin of
 * each write, and a body must be JSON, which forms cannot send.
 */
export function queueBoard(
  deps: Pick<PageDeps, 'producer' | 'db' | 'now' | 'log'> & { problems: Pick<Problems, 'read'> },
  ops: OpsOptions,
): Middleware<ApiState> {
  const boards = new Map<OperatorRole, Promise<Middleware<ApiState>>>();
  const boardOf = (role: OperatorRole) => {
    const known = boards.get(role) ?? board(deps, ops, role === 'viewer');
    boards.set(role, known);
    return known;
  };

  return async (ctx, next) => {
    if (!isBelow(ctx.path)) return next();
    const { operator } = sessionOf(ctx);
    const show = await boardOf(operator.role);
    if (ctx.method === 'GET' || ctx.method === 'HEAD') {
      await show(ctx, next);
      if (typeof ctx.body === 'string' && ctx.response.is('html')) {
        const { facts, readAtMs } = await deps.problems.read();
        const { length } = findProblems({ ...facts, nowMs: deps.now() });
        const until = `${new Date(readAtMs).toISOString().slice(11, 19)} UTC`;
        const text =
          length === 0
            ? `nothing wrong until ${until}`
            : `${length === 1 ? '1 problem' : `${length} problems`} at ${until}`;
        ctx.body = ctx.body.replace(FOREIGN_TAGS, '').replace('<div id="root">', `${backLink(text)}$&`);
      }
      return;
    }
    const target = `${ctx.method} ${ctx.path.slice(BASE_PATH.length)}`;
    const action = { action: 'queue.write', target, operator, requestId: ctx.state.requestId };
    await requireOperator(deps, action);
    rejectForms(ctx);
    await runAudited(deps, action, async () => {
      await show(ctx, next);
      return { result: `answered ${ctx.status}`, hasFailed: ctx.status >= 400 };
    });
  };
}

const UTC_CLOCK = {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
  timeZone: 'UTC',
  timeZoneName: 'short',
} as const;
const UTC_DAY = { month: '2-digit', day: '2-digit' } as const;
/** UTC, as on all other pages. By default the dashboard shows the time zone of the browser. */
const DATE_FORMATS = {
  short: UTC_CLOCK,
  common: { ...UTC_DAY, ...UTC_CLOCK },
  full: { year: 'numeric', ...UTC_DAY, ...UTC_CLOCK },
} as const;

/** The page about the subject of a job. */
function externalJobUrl({ name, data }: { name: string; data: unknown }): { displayText: string; href: string } {
  const { venue, subscriptionPk } = (data ?? {}) as { venue?: unknown; subscriptionPk?: unknown };
  if (typeof venue === 'string')
    return { displayText: `Venue ${venue}`, href: `/ops/venues/${encodeURIComponent(venue)}` };
  if (subscriptionPk !== undefined)
    return { displayText: 'Webhook', href: `/ops/webhooks/${encodeURIComponent(String(subscriptionPk))}` };
  if (name.startsWith('deliver')) return { displayText: 'Deliveries', href: '/ops/deliveries?status=pending' };
  return name === 'evaluate-alerts'
    ? { displayText: 'Alerts', href: '/ops/alerts' }
    : { displayText: 'Stages', href: '/ops#stages' };
}

/** A dashboard; read-only for viewers. The first request loads bull-board, because it is a large part of the code of an API. */
async function board(
  deps: Pick<PageDeps, 'producer'>,
  ops: OpsOptions,
  isReadOnly: boolean,
): Promise<Middleware<ApiState>> {
  const [{ createBullBoard }, { BullMQAdapter }, { KoaAdapter }] = await Promise.all([
    import('@bull-board/api'),
    import('@bull-board/api/bullMQAdapter'),
    import('@bull-board/koa'),
  ]);
  const adapter = new KoaAdapter();
  adapter.setBasePath(BASE_PATH);
  createBullBoard({
    queues: ops.queueNames.map(
      (name) => new BullMQAdapter(deps.producer.queue(name), { readOnlyMode: isReadOnly, externalJobUrl }),
    ),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'oddswire queues', dateFormats: DATE_FORMATS } },
  });
  return adapter.registerPlugin();
}

function isBelow(path: string): boolean {
  return path === BASE_PATH || path.startsWith(`${BASE_PATH}/`);
}

function rejectForms(ctx: ParameterizedContext<ApiState>): void {
  const hasBody = ctx.get('Transfer-Encoding') !== '' || Number(ctx.get('Content-Length') || 0) > 0;
  const [type = ''] = ctx.get('Content-Type').toLowerCase().split(';');
  if (type.trim() === 'application/json' || (!hasBody && type === '')) return;
  throw new ApiError('unsupported_media_type', 'the queues accept only JSON', {
    headers: { Accept: 'application/json' },
  });
}
