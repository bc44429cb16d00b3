import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { ApiDeps } from './deps.ts';
import type { PreparedAnswer } from './latest-cache.ts';
import { reportRequest, requestIdOf } from './middleware/request-context.ts';
import { answerHeaders, answerText, matchesEtag } from './respond.ts';

/** From here on an answer is compressed for who can read it. */
const COMPRESSED_FROM_CHARACTERS = 1024 / 4;
const BEARER = /^Bearer ([\x21-\x7e]+)$/;
const NOT_PLAIN = /[^\x20-\x7e]/;

type RecentDeps = Pick<ApiDeps, 'keys' | 'latest' | 'log' | 'now' | 'onRequest'>;

/**
 * Answers a GET whose very target was answered within the last second, to whoever may read market data: byte for byte what the
 * app would answer, without routing, reading the query and a dozen middlewares (DESIGN section 11: half the rate of a bare
 * server). Only market routes leave answers in the cache. Whatever is not as usual is left to `app`.
 */
export function withRecentAnswers(deps: RecentDeps, app: RequestListener): RequestListener {
  return (req, res) => {
    const recent = req.method === 'GET' ? deps.latest.recent(req.url ?? '') : undefined;
    const key = recent && BEARER.exec(req.headers.authorization ?? '')?.[1];
    if (!recent || key === undefined || isUnusual(req, recent.answer)) return app(req, res);
    const startedAtMs = performance.now();
    deps.keys.find(key, deps.now()).then(
      (found) => {
        if (!found?.scopes.includes('markets:read')) return app(req, res);
        const requestId = requestIdOf(req.headers['x-request-id']);
        const log = () => deps.log.child({ requestId });
        reportRequest(deps, res, { startedAtMs, method: 'GET', route: () => recent.route, log, keyId: () => found.id });
        send(req, res, recent.answer, requestId, deps.now());
      },
      // The app meets the same trouble, and knows how to say it.
      () => app(req, res),
    );
  };
}

function isUnusual(req: IncomingMessage, answer: PreparedAnswer): boolean {
  const isCompressed = req.headers['accept-encoding'] !== undefined && answer.data.length >= COMPRESSED_FROM_CHARACTERS;
  return isCompressed || NOT_PLAIN.test(req.rawHeaders.join(''));
}

function send(req: IncomingMessage, res: ServerResponse, answer: PreparedAnswer, requestId: string, nowMs: number) {
  const headers = ['X-Request-Id', requestId, ...answerHeaders(answer)];
  if (matchesEtag(req.headers['if-none-match'] ?? '', answer.etag)) {
    res.writeHead(304, headers).end();
    return;
  }
  const text = answerText(answer, requestId, nowMs);
  headers.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(Buffer.byteLength(text)));
  res.writeHead(200, headers).end(text);
}
