import type { Scope } from '../../../src/domain/values/api-key.ts';
import { consoleSessions } from '../../../src/store/accounts/sessions.ts';
import type { Assets } from '../kit/assets.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { createPageRouter, type PageRequest, type PageRouter } from '../kit/router.ts';
import type { ConsoleSession } from '../kit/session.ts';
import { consoleSessionOf } from './access/session.ts';
import { type ApiAnswer, type ApiCall, type ApiCalls, requireScope, type ShownRequest } from './api-calls.ts';
import { consolePage, type Section } from './layout.ts';

/** A request with a session. */
export interface ConsoleRequest extends PageRequest<ConsoleSession> {
  /** Runs a route of the API with the scopes of the session's key. */
  api<Data>(call: ApiCall): Promise<ApiAnswer<Data>>;
  shown(call: ApiCall): ShownRequest;
}

export interface ActionRequest extends ConsoleRequest {
  form: URLSearchParams;
}

/** The scope of a route. Without one, every key may use it. */
interface Rule {
  scope?: Scope;
}

export type ConsoleRouter = PageRouter<ConsoleRequest, Section, Rule>;

export function createConsoleRouter(
  deps: Pick<PageDeps, 'db' | 'now'>,
  calls: ApiCalls,
  assets: Assets,
): ConsoleRouter {
  return createPageRouter(deps, {
    sessionOf: consoleSessionOf,
    requestOf: (request) => ({
      ...request,
      api: (call) => calls.call(request.session, request.requestId, call),
      shown: calls.shown,
    }),
    admit: ({ session }, { scope }) => requireScope(session, scope),
    show: (content) => consolePage(assets, content),
    setFlash: consoleSessions.setFlash,
  });
}
