import type { OpsOptions } from '../../../../api/pages/ops/access/session.ts';
import { noPassword } from '../../../../src/domain/values/password.ts';
import type { OperatorRole } from '../../../../src/store/ops/operators.ts';
import { PASSWORD_COST } from '../../../factories/operators.ts';
import type { Answer, TestApi } from '../api-harness.ts';

export const OPS_PASSWORDS = { operator: 'a-password-for-operators', viewer: 'a-password-for-viewers' } as const;

/** Options for `startTestApi({ ops: testOps() })`. */
export function testOps(overrides: Partial<OpsOptions> = {}): OpsOptions {
  const sessionKey = Buffer.alloc(32, 3);
  return { passwords: OPS_PASSWORDS, sessionKey, noPassword: noPassword(PASSWORD_COST), queueNames: [], ...overrides };
}

/** A logged-in client that behaves like a browser. */
export interface OpsClient {
  /** The session cookie as `name=value`. */
  cookie: string;
  /** The form token of the session, from its overview. */
  csrf: string;
  /** Reads a page as a browser does, without following redirects. */
  page(path: string): Promise<Answer>;
  /** Posts a form, by default with the token of the session. */
  post(path: string, fields?: Record<string, string>, headers?: Record<string, string>): Promise<Answer>;
  /** Any other request with the cookie. */
  call(path: string, init?: RequestInit & { headers?: Record<string, string> }): Promise<Answer>;
}

export const AS_BROWSER = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

/** Sends the login form. */
export function tryLogin(api: TestApi, password: string, fields: Record<string, string> = {}): Promise<Answer> {
  return api.call('/ops/login', {
    method: 'POST',
    redirect: 'manual',
    headers: { ...AS_BROWSER, Origin: api.url },
    body: new URLSearchParams({ password, ...fields }),
  });
}

/** Logs in with a password of the configuration. */
export function logIn(api: TestApi, role: OperatorRole = 'operator'): Promise<OpsClient> {
  return logInAs(api, '', OPS_PASSWORDS[role]);
}

/** Logs in by name. */
export async function logInAs(api: TestApi, name: string, password: string): Promise<OpsClient> {
  const answer = await tryLogin(api, password, { name });
  const [cookie = ''] = answer.headers.getSetCookie().map((line) => line.split(';')[0] ?? '');
  const call: OpsClient['call'] = (path, init = {}) =>
    api.call(path, { redirect: 'manual', ...init, headers: { ...init.headers, Cookie: cookie } });
  const page: OpsClient['page'] = (path) => call(path, { headers: AS_BROWSER });
  const csrf = /name="csrf" value="([^"]+)"/.exec((await page('/ops/audit')).text)?.[1] ?? '';
  return {
    cookie,
    csrf,
    call,
    page,
    post: (path, fields = {}, headers = {}) =>
      call(path, {
        method: 'POST',
        headers: { ...AS_BROWSER, Origin: api.url, ...headers },
        body: new URLSearchParams({ csrf, ...fields }),
      }),
  };
}
