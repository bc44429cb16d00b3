import type { Scope } from '../../../../src/domain/values/api-key.ts';
import type { Answer, Client, TestApi } from '../api-harness.ts';
import { AS_BROWSER } from '../ops/ops-client.ts';

/** A signed-in client that behaves like a browser. */
export interface ConsoleClient extends Client {
  /** The session cookie as `name=value`. */
  cookie: string;
  csrf: string;
  /** Reads a page as a browser does, without following redirects. */
  page(path: string): Promise<Answer>;
  /** Posts a form, by default with the token of the session. */
  post(path: string, fields?: Record<string, string>, headers?: Record<string, string>): Promise<Answer>;
  get(path: string): Promise<Answer>;
}

/** Sends the sign-in form. */
export function trySignIn(
  api: TestApi,
  key: string,
  fields: Record<string, string> = {},
  origin = api.url,
): Promise<Answer> {
  return api.call('/sign-in', {
    method: 'POST',
    redirect: 'manual',
    headers: { ...AS_BROWSER, Origin: origin },
    body: new URLSearchParams({ key, ...fields }),
  });
}

/** The first cookie that an answer sets, as `name=value`. */
export function cookieOf({ headers }: Answer): string {
  return headers.getSetCookie()[0]?.split(';')[0] ?? '';
}

/** Signs in with a new key, or with the key of a client. */
export async function signIn(api: TestApi, scopes?: readonly Scope[], known?: Client): Promise<ConsoleClient> {
  const client = known ?? (await api.client(scopes));
  const cookie = cookieOf(await trySignIn(api, client.key));
  const call = (path: string, init: RequestInit & { headers?: Record<string, string> } = {}) =>
    api.call(path, { redirect: 'manual', ...init, headers: { ...init.headers, Cookie: cookie } });
  const page = (path: string) => call(path, { headers: AS_BROWSER });
  const csrf = /name="csrf" value="([^"]+)"/.exec((await page('/usage')).text)?.[1] ?? '';
  return {
    ...client,
    cookie,
    csrf,
    page,
    get: (path) => call(path, { headers: { Accept: 'application/json' } }),
    post: (path, fields = {}, headers = {}) =>
      call(path, {
        method: 'POST',
        headers: { ...AS_BROWSER, Origin: api.url, ...headers },
        body: new URLSearchParams({ csrf, once: 'once', ...fields }),
      }),
  };
}
