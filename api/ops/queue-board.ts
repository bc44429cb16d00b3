import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { KoaAdapter } from '@bull-board/koa';
import type { Middleware } from 'koa';
import type { ApiDeps, ApiState, OpsOptions } from '../deps.ts';

const BASE_PATH = '/ops/queues';

/** Tags that load something from another host; the page of bull-board links a font service. */
const FOREIGN_TAGS = /<(link|script|img|iframe)\b[^>]*\b(?:href|src)=["']?(?:https?:)?\/\/[^>]*>(?:\s*<\/\1>)?/gi;

/** bull-board under /ops/queues, reading and writing, with a page that names no third-party host. */
export function queueBoard(deps: Pick<ApiDeps, 'producer'>, ops: OpsOptions): Middleware<ApiState> {
  const adapter = new KoaAdapter();
  adapter.setBasePath(BASE_PATH);
  createBullBoard({
    queues: ops.queueNames.map((name) => new BullMQAdapter(deps.producer.queue(name))),
    serverAdapter: adapter,
    options: { uiConfig: { boardTitle: 'oddswire queues' } },
  });
  const board = adapter.registerPlugin();
  return async (ctx, next) => {
    await board(ctx, next);
    if (typeof ctx.body === 'string' && ctx.response.is('html')) ctx.body = ctx.body.replace(FOREIGN_TAGS, '');
  };
}
