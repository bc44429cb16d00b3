import type { Middleware, ParameterizedContext } from 'koa';
import { type ApiJson, toJsonText } from '../../src/domain/values/api-json.ts';
import { InvalidCursorError } from '../../src/domain/values/cursor.ts';
import { scrubData } from '../../src/domain/values/text.ts';
import { TimeRangeError } from '../../src/domain/values/time-range.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { isDatabaseUnavailable } from '../../src/store/db/tx.ts';
import { SecretKeyMissingError } from '../../src/webhooks/secret-box.ts';
import type { ApiState } from '../context.ts';
import { ApiError, type ErrorDetail, invalidRequest, notReady } from '../errors.ts';
import { routeOf } from './request-context.ts';

/** `{success:false, error, meta}` as JSON text. All failures have this form, without a stack trace. */
export function errorBody(
  error: { code: string; message: string; details?: readonly ErrorDetail[] },
  requestId: string,
  nowMs: number,
  warnings?: readonly ErrorDetail[],
): string {
  const { code, message, details = [] } = error;
  const timestamp = Math.floor(nowMs / 1000);
  const body: ApiJson = {
    success: false,
    error: {
      code,
      message,
      ...(details.length > 0 && { details: listed(details) }),
    },
    meta: { request_id: requestId, timestamp, ...(warnings && { warnings: listed(warnings) }) },
  };
  return toJsonText(scrubData(body), 'number');
}

/** Details or warnings as JSON. */
export function listed(details: readonly ErrorDetail[]): { path: string; message: string }[] {
  return details.map(({ path, message }) => ({ path, message }));
}

/** Converts errors of the routes into answers. */
export function envelope(deps: { log: Logger; now(): number }): Middleware<ApiState> {
  return async (ctx, next) => {
    try {
      await next();
    } catch (thrown) {
      const error = toApiError(thrown);
      if (error.status === 500) logFailedRequest(deps, ctx, thrown);
      if (thrown instanceof SecretKeyMissingError) {
        const { requestId } = ctx.state;
        const message = 'request refused: SECRETS_KEYS has no key for a stored value';
        logLimited(deps.log, { level: 'error', fields: { requestId, kid: thrown.kid }, message, kind: thrown.kid });
      }
      for (const name of ['ETag', 'Location', 'Last-Modified']) ctx.remove(name);
      ctx.set(error.headers);
      ctx.set('Cache-Control', 'no-store');
      ctx.status = error.status;
      ctx.type = 'application/json; charset=utf-8';
      ctx.body = errorBody(error, ctx.state.requestId, deps.now(), ctx.state.warnings);
    }
  };
}

/** A client can repeat a request that fails. */
export function logFailedRequest({ log }: { log: Logger }, ctx: ParameterizedContext<ApiState>, thrown: unknown): void {
  // A call inside this process has logged it.
  if (thrown instanceof ApiError) return;
  const { requestId } = ctx.state;
  const fields = { requestId, err: thrown };
  logLimited(log, { level: 'error', fields, message: 'request failed', kind: routeOf(ctx) });
}

/** The client's view of an error. */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof InvalidCursorError) return new ApiError('invalid_cursor', thrown.message);
  if (thrown instanceof TimeRangeError) return invalidRequest([{ path: thrown.path, message: thrown.message }]);
  if (isDatabaseUnavailable(thrown)) {
    return notReady('the database is not available', [{ path: 'database', message: 'not available' }], thrown);
  }
  // Another process has the key, or this one after a restart. Nothing was written, so the client repeats the request.
  if (thrown instanceof SecretKeyMissingError) {
    return notReady('a stored value cannot be read', [{ path: 'secrets', message: 'key not available' }], thrown);
  }
  return new ApiError('internal_error', 'the server failed to answer this request', { cause: thrown });
}
