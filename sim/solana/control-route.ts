import { SimControlError } from '../errors.ts';
import { json, type Reply, type SimRequest } from '../server/reply.ts';
import type { TransactionVersion } from './chain.ts';
import type { SolanaControl } from './network.ts';

/**
 * Manual control at `/_sim/solana`: GET lists people and tokens. POST `/_sim/solana/transfer` executes a transaction, `/_sim/solana/price`
 * sets a price, `/_sim/solana/versions` sets the newest transaction version of the traffic and its share, `/_sim/solana/failure` makes the
 * next calls of a JSON-RPC method fail.
 */
export function solanaControlRoute(control: SolanaControl): (request: SimRequest) => Reply | undefined {
  return ({ method, path, body }) => {
    if (!/^\/solana(\/|$)/.test(path)) return undefined;
    try {
      switch (`${method} ${path}`) {
        case 'GET /solana':
          return json({ people: control.people(), tokens: control.tokens() });
        case 'POST /solana/transfer':
          return json(control.transfer(transferOf(objectOf(body))), 201);
        case 'POST /solana/versions': {
          const { version, share } = objectOf(body);
          if (version !== 1 && version !== 2) throw invalid('version must be 1 or 2');
          if (typeof share !== 'number') throw invalid('share must be a number');
          control.setNewestVersion(version, share);
          return json({ done: true });
        }
        case 'POST /solana/failure':
          control.failRpc(failureOf(objectOf(body)));
          return json({ done: true });
        case 'POST /solana/price':
          control.setPrice(priceOf(objectOf(body)));
          return json({ done: true });
        default:
          return undefined;
      }
    } catch (error) {
      if (!(error instanceof SimControlError)) throw error;
      return json({ error: { code: error.code, message: error.message } }, error.status);
    }
  };
}

function invalid(message: string): SimControlError {
  return new SimControlError(400, 'invalid_request', message);
}

function objectOf(body: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(body)) as Record<string, unknown>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalid('the body is not JSON');
  }
}

const VERSIONS: readonly unknown[] = ['legacy', 0, 1, 2] satisfies TransactionVersion[];

function transferOf({ from, to, mint, units, fails, version, priorityFee }: Record<string, unknown>) {
  if (typeof from !== 'string' || typeof to !== 'string') throw invalid('from and to must be addresses');
  if (typeof units !== 'string') throw invalid('units must be a whole number as text');
  if (mint !== undefined && typeof mint !== 'string') throw invalid('mint must be text');
  if (version !== undefined && !VERSIONS.includes(version)) throw invalid('version must be legacy, 0, 1 or 2');
  if (priorityFee !== undefined && typeof priorityFee !== 'string') throw invalid('priorityFee must be text');
  return { from, to, mint, units, fails: fails === true, version: version as TransactionVersion, priorityFee };
}

function failureOf({ method, code, message, count, status }: Record<string, unknown>) {
  if (typeof method !== 'string' || typeof message !== 'string') throw invalid('method and message must be text');
  if (typeof code !== 'number') throw invalid('code must be a number');
  if (count !== undefined && !Number.isInteger(count)) throw invalid('count must be a whole number');
  if (status !== undefined && !(Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599)) {
    throw invalid('status must be an HTTP status');
  }
  return { method, code, message, count: count as number | undefined, status: status as number | undefined };
}

function priceOf({ mint, usd, blockId }: Record<string, unknown>) {
  if (typeof mint !== 'string') throw invalid('mint must be text');
  if (usd !== null && typeof usd !== 'number') throw invalid('usd must be a number or null');
  return { mint, usd, blockId: typeof blockId === 'number' ? blockId : undefined };
}
