import { SimControlError } from '../errors.ts';
import { json, type Reply, type SimRequest } from '../server/reply.ts';
import type { SolanaControl } from './network.ts';

/**
 * `/_sim/solana` by hand: GET says who there is, POST `/_sim/solana/transfer` and `/_sim/solana/price` make things
 * happen.
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

function transferOf({ from, to, mint, units, fails }: Record<string, unknown>) {
  if (typeof from !== 'string' || typeof to !== 'string') throw invalid('from and to must be addresses');
  if (typeof units !== 'string') throw invalid('units must be a whole number as text');
  if (mint !== undefined && typeof mint !== 'string') throw invalid('mint must be text');
  return { from, to, mint, units, fails: fails === true };
}

function priceOf({ mint, usd, blockId }: Record<string, unknown>) {
  if (typeof mint !== 'string') throw invalid('mint must be text');
  if (usd !== null && typeof usd !== 'number') throw invalid('usd must be a number or null');
  return { mint, usd, blockId: typeof blockId === 'number' ? blockId : undefined };
}
