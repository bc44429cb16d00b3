import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { KoaAdapter } from '@bull-board/koa';
import type { Middleware, ParameterizedContext } from 'koa';
import type { ApiDeps, ApiState, OpsOptions } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { requireOperator, runAudited } from './audit.ts';
import { sessionOf } from './ops-session.ts';

const BASE_PATH = '/ops/queues';

/** Tags that load something from another host; the page of bull-board links a font service. */
const FOREIGN_TAGS = /<(link|script|img|iframe)\b[^>]*\b(?:href|src)=["']?(?:https?:)?\/\/[^>]*>(?:\s*<\/\1>)?/gi;

/** The dashboard fills the window: the way back lies over its corner. */
const WAY_BACK =
  '<a href="/ops" style="position:fixed;left:12px;bottom:44px;z-index:1000;padding:6px 12px;border:1px solid GrayText;' +
  'border-radius:6px;background:Canvas;color:CanvasText;font:14px system-ui,sans-serif;text-decoration:none">← Operator pages</a>';

/**
 * bull-board under /ops/queues: every session reads, operators write, each write goes into the audit log. Its own writes
 * carry no form token. Three rules keep other sites out: browsers send the cookie on same-site requests only, the origin of
 * each request is checked, and a body must be JSON, which no form can send.
 */
export function queueBoard(
  deps: Pick<ApiDeps, 'producer' | 'db' | 'now' | 'log'>,
  ops: OpsOptions,
): Middleware<ApiState> {
  const boards = { operator: board(deps, ops, false), viewer: board(deps, ops, true) };

  return async (ctx, next) => {
    if (!isBelow(ctx.path)) return next();
    const { operator } = sessionOf(ctx);
    const show = boards[operator.role];
    if (ctx.method === 'GET' || ctx.method === 'HEAD') {
      await show(ctx, next);
      if (typeof ctx.body === 'string' && ctx.response.is('html')) {
        ctx.body = ctx.body.replace(FOREIGN_TAGS, '').replace('<div id="root">', `${WAY_BACK}$&`);
      }
      return;
    }
    const target = `${ctx.method} ${ctx.path.slice(BASE_PATH.length)}`;
    const action = { action: 'queue.write', target, operator, requestId: ctx.state.requestId };
    await requireOperator(deps, action);
    refuseForms(ctx);
    await runAudited(deps, action, async () => {
      await show(ctx, next);
      return { result: `answered ${ctx.status}`, hasFailed: ctx.status >= 400 };
    });
  };
}

/** Hides its buttons from viewers. */
function board(deps: Pick<ApiDeps, 'producer'>, ops: OpsOptions, isReadOnly: boolean): Middleware<ApiState> {
  const adapter = new KoaAdapter();
  adapter.setBasePath(BASE_PATH);
  createBullBoard({
    queues: ops.queueNames.map((name) => new BullMQAdapter(deps.producer.queue(name), { readOnlyMode: isReadOnly })),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'oddswire queues' } },
  });
  return adapter.registerPlugin();
}

function isBelow(path: string): boolean {
  return path === BASE_PATH || path.startsWith(`${BASE_PATH}/`);
}

function refuseForms(ctx: ParameterizedContext<ApiState>): void {
  const hasBody = ctx.get('Transfer-Encoding') !== '' || Number(ctx.get('Content-Length') || 0) > 0;
  const [type = ''] = ctx.get('Content-Type').toLowerCase().split(';');
  if (type.trim() === 'application/json' || (!hasBody && type === '')) return;
  throw new ApiError('unsupported_media_type', 'the queues take JSON only', {
    headers: { Accept: 'application/json' },
  });
}
