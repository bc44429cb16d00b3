import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { hostProblem } from '../access/host-header.ts';
import { prefersCsv } from '../http/csv-answer.ts';
import type { AnswerDeps } from '../http/deps.ts';
import { answerHeaders, answerText, matchesEtag, varyOf } from '../http/respond.ts';
import { type AuthDeps, rateLimitHeaders } from '../middleware/authenticate.ts';
import { type ReportDeps, reportRequest, requestIdOf } from '../middleware/request-context.ts';
import { SECURITY_HEADERS } from '../middleware/security-headers.ts';
import type { PreparedAnswer, RecentAnswer } from './answer-cache.ts';
import type { MarketMemory } from './market-memory.ts';

/** Answers of at least this size are compressed for clients that accept it. */
const COMPRESSED_FROM_CHARACTERS = 1024 / 4;
const BEARER = /^Bearer ([\x21-\x7e]+)$/;
const NOT_PLAIN = /[^\x20-\x7e]/;

type RecentDeps = ReportDeps &
  Pick<AuthDeps, 'keys' | 'limits' | 'now'> &
  Pick<AnswerDeps, 'answers' | 'memory'> & { corsOrigins: readonly string[] };

/** A target of a market in memory, as clients write it: one venue, plain characters, no parameters. */
const MARKET_TARGET = /^\/v1\/([a-z]+)\/markets\/([\w.-]+)(\/prices)?$/;
const MARKET_ROUTE = '/v1/:venue/markets/:market_id';

function fromMemory(memory: MarketMemory | undefined, target: string): RecentAnswer | undefined {
  const [, venue, marketId, prices] = (memory && MARKET_TARGET.exec(target)) ?? [];
  if (!memory || venue === undefined || marketId === undefined) return undefined;
  const found = prices === undefined ? memory.market({ venue, marketId }) : memory.prices({ venue, marketId });
  const route = prices === undefined ? MARKET_ROUTE : `${MARKET_ROUTE}/prices`;
  return found && { answer: found.answer, route, used: () => memory.used(found) };
}

/**
 * Answers a GET of a target with an answer in memory, for keys with the scope of market data. The answer is byte for
 * byte the answer of the app, but needs no routing, query parsing or middleware. Only market routes put answers into the cache. Other
 * requests go to `app`, for example keys without a cached look-up, accounts at their limit, pages of other origins, and requests for CSV.
 */
export function withRecentAnswers(deps: RecentDeps, app: RequestListener): RequestListener {
  const hasCors = deps.corsOrigins.length > 0;
  return (req, res) => {
    const target = req.url ?? '';
    const recent = req.method === 'GET' ? (fromMemory(deps.memory, target) ?? deps.answers.recent(target)) : undefined;
    const key = recent && BEARER.exec(req.headers.authorization ?? '')?.[1];
    if (!recent || key === undefined || isUnusual(req, recent.answer)) return app(req, res);
    if (hasCors && req.headers.origin !== undefined) return app(req, res);
    const startedAtMs = performance.now();
    const nowMs = deps.now();
    const found = deps.keys.findCached(key, nowMs);
    if (!found?.scopes.includes('markets:read')) return app(req, res);
    const admission = deps.limits.take('requests', found.accountId, found.ratePerMinute);
    // `take` does not count a rejected request, so the app reaches the same result.
    if (admission?.isAdmitted === false) return app(req, res);
    recent.used();
    const requestId = requestIdOf(req.headers['x-request-id']);
    const route = () => recent.route;
    reportRequest(deps, res, { startedAtMs, method: 'GET', requestId, route, keyId: () => found.id });
    const headers = ['X-Request-Id', requestId, ...SECURITY_HEADERS, ...rateLimitHeaders(admission)];
    const vary = varyOf(recent.answer);
    headers.push(...answerHeaders(recent.answer, (hasCors ? ['Origin', ...vary] : vary).join(', ')));
    send(req, res, { answer: recent.answer, headers, requestId, nowMs });
  };
}

function isUnusual(req: IncomingMessage, answer: PreparedAnswer): boolean {
  const isCompressed = req.headers['accept-encoding'] !== undefined && answer.data.length >= COMPRESSED_FROM_CHARACTERS;
  if (isCompressed || prefersCsv(req.headers.accept)) return true;
  return NOT_PLAIN.test(req.rawHeaders.join('')) || hostProblem(req) !== null;
}

function send(
  req: IncomingMessage,
  res: ServerResponse,
  made: { answer: PreparedAnswer; headers: string[]; requestId: string; nowMs: number },
): void {
  const { answer, headers, requestId, nowMs } = made;
  if (matchesEtag(req.headers['if-none-match'] ?? '', answer.etag)) {
    res.writeHead(304, headers).end();
    return;
  }
  const text = answerText(answer, requestId, nowMs);
  const bytes = text.length + answer.extraBytes;
  headers.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(bytes));
  res.writeHead(200, headers).end(text);
}
