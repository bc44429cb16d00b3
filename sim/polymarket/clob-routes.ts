import { json, jsonText, plainError, type Reply, type SimRequest } from '../server/reply.ts';
import type { ClobSource } from '../source.ts';

const MAX_BATCH = 500;
const NO_BOOK = 'No orderbook exists for the requested token id';
/** The venue's answer for a token that never traded. */
const NEVER_TRADED = { price: '0.5', side: '' };

/** The routes of clob.polymarket.com that the service reads. */
export function clobRoutes(source: ClobSource): (request: SimRequest) => Reply | undefined {
  return (request) => {
    const { method, path } = request;
    if (method === 'GET' && path.startsWith('/markets/')) return market(source, path.slice('/markets/'.length));
    switch (`${method} ${path}`) {
      case 'GET /book':
        return single(request, (tokenId) => source.bookText(tokenId));
      case 'GET /midpoint':
        return single(request, (tokenId) => textOf('mid', source.midpoint(tokenId)));
      case 'GET /spread':
        return single(request, (tokenId) => textOf('spread', source.spread(tokenId)));
      case 'GET /last-trade-price':
        return single(request, (tokenId) => JSON.stringify(source.lastTrade(tokenId) ?? NEVER_TRADED));
      case 'POST /books':
        return batch(request, (ids) => jsonText(`[${defined(ids, (id) => source.bookText(id)).join(',')}]`));
      case 'GET /midpoints':
      case 'POST /midpoints':
        return batch(request, (ids) => json(byToken(ids, (id) => source.midpoint(id))));
      case 'GET /spreads':
      case 'POST /spreads':
        return batch(request, (ids) => json(byToken(ids, (id) => source.spread(id))));
      case 'GET /last-trades-prices':
      case 'POST /last-trades-prices':
        return batch(request, (ids) => json(defined(ids, (id) => lastTradeOf(source, id))));
      default:
        return undefined;
    }
  };
}

function single(request: SimRequest, answer: (tokenId: string) => string | undefined): Reply {
  const tokenId = request.query.get('token_id');
  if (!tokenId) return plainError(400, 'Invalid token id');
  const text = answer(tokenId);
  return text === undefined ? plainError(404, NO_BOOK) : jsonText(text);
}

function batch(request: SimRequest, answer: (tokenIds: readonly string[]) => Reply): Reply {
  const tokenIds = request.method === 'GET' ? listedTokens(request.query) : tokensOfBody(request.body);
  if (tokenIds === undefined) return plainError(400, 'Invalid payload');
  if (tokenIds.length > MAX_BATCH) return plainError(400, 'Payload exceeds the limit');
  return answer([...new Set(tokenIds)]);
}

function listedTokens(query: URLSearchParams): string[] | undefined {
  const ids = query.get('token_ids')?.split(',').filter(Boolean);
  return ids === undefined || ids.length === 0 ? undefined : ids;
}

/** `[{"token_id":"…"}]`; undefined for anything else. */
function tokensOfBody(body: string): string[] | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (!Array.isArray(parsed)) return undefined;
  const ids: string[] = [];
  for (const item of parsed as unknown[]) {
    if (typeof item !== 'object' || item === null || !('token_id' in item)) return undefined;
    if (typeof item.token_id !== 'string') return undefined;
    ids.push(item.token_id);
  }
  return ids;
}

function market(source: ClobSource, conditionId: string): Reply {
  const text = source.marketText(conditionId);
  return text === undefined ? plainError(404, 'market not found') : jsonText(text);
}

function lastTradeOf(source: ClobSource, tokenId: string): Record<string, string> | undefined {
  const last = source.lastTrade(tokenId);
  return last === undefined ? undefined : { price: last.price, side: last.side, token_id: tokenId };
}

function textOf(key: string, value: string | undefined): string | undefined {
  return value === undefined ? undefined : JSON.stringify({ [key]: value });
}

function defined<T>(ids: readonly string[], of: (id: string) => T | undefined): T[] {
  const found: T[] = [];
  for (const id of ids) {
    const value = of(id);
    if (value !== undefined) found.push(value);
  }
  return found;
}

function byToken(ids: readonly string[], of: (id: string) => string | undefined): Record<string, string> {
  const found: Record<string, string> = {};
  for (const id of ids) {
    const value = of(id);
    if (value !== undefined) found[id] = value;
  }
  return found;
}
