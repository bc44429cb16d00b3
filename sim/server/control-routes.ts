import type { ExchangeControl, PriceRequest, SteerRequest } from '../control.ts';
import { SimControlError } from '../errors.ts';
import type { FaultRequest } from '../faults.ts';
import type { FeeRequest } from '../world/fees.ts';
import { json, type Reply, type SimRequest, wholeNumber } from './reply.ts';

const MAX_STATE_MARKETS = 500;
const DEFAULT_LEDGER_ROWS = 10_000;

/** `/_sim/...`: JSON in, JSON out; errors are `{error:{code, message}}`. */
export function controlRoutes(control: ExchangeControl): (request: SimRequest) => Reply {
  return (request) => {
    try {
      return answer(control, request);
    } catch (error) {
      if (!(error instanceof SimControlError)) throw error;
      return json({ error: { code: error.code, message: error.message } }, error.status);
    }
  };
}

function answer(control: ExchangeControl, request: SimRequest): Reply {
  const { method, path, query } = request;
  const [, name, id] = path.split('/');
  switch (`${method} /${name}`) {
    case 'GET /health':
      return json({ status: 'ok' });
    case 'GET /state': {
      const state = control.state();
      return json({ ...state, markets: state.markets.slice(0, MAX_STATE_MARKETS) });
    }
    case 'GET /ledger':
      return json(control.ledger(numberOf(query, 'since') ?? 0, numberOf(query, 'limit') ?? DEFAULT_LEDGER_ROWS));
    case 'GET /resolutions':
      return json(control.resolutions());
    case 'GET /requests':
      return json(control.requests());
    case 'GET /faults':
      return json(control.faults());
    case 'POST /faults':
      // The board checks every field it uses.
      return json(control.addFault(objectOf(request.body) as unknown as FaultRequest), 201);
    case 'DELETE /faults':
      return json({ cleared: control.clearFaults(id === undefined ? undefined : Number(id)) });
    case 'POST /price':
      return json(control.forcePrice(priceOf(request.body)));
    case 'POST /markets':
      // The control checks every field it uses.
      control.steer(objectOf(request.body) as unknown as SteerRequest);
      return json({ done: true });
    case 'POST /fees':
      // The control checks every field it uses.
      control.changeFee(objectOf(request.body) as unknown as FeeRequest);
      return json({ done: true });
    case 'POST /pause':
      control.pause();
      return json({ paused: true });
    case 'POST /resume':
      control.resume();
      return json({ paused: false });
    case 'POST /step': {
      const { steps = 1 } = objectOf(request.body || '{}');
      control.step(typeof steps === 'number' ? steps : Number.NaN);
      return clockReply(control);
    }
    case 'POST /idle': {
      const { seconds } = objectOf(request.body || '{}');
      control.idle(typeof seconds === 'number' ? seconds : Number.NaN);
      return clockReply(control);
    }
    default:
      return json({ error: { code: 'not_found', message: `no control route ${method} /_sim${path}` } }, 404);
  }
}

function clockReply(control: ExchangeControl): Reply {
  const { second, trades } = control.state();
  return json({ second, nextIndex: trades.total });
}

function priceOf(body: string): PriceRequest {
  const { tokenId, price, holdMs } = objectOf(body);
  if (typeof tokenId !== 'string') throw new SimControlError(400, 'invalid_request', 'tokenId must be a string');
  if (typeof price !== 'string' && typeof price !== 'number') {
    throw new SimControlError(400, 'invalid_request', 'price must be a string or a number');
  }
  if (holdMs !== undefined && typeof holdMs !== 'number') {
    throw new SimControlError(400, 'invalid_request', 'holdMs must be a number');
  }
  return { tokenId, price, holdMs };
}

function objectOf(body: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new SimControlError(400, 'invalid_json', 'the body is not JSON');
  }
  if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>;
  throw new SimControlError(400, 'invalid_json', 'the body is not a JSON object');
}

function numberOf(query: URLSearchParams, name: string): number | undefined {
  const value = wholeNumber(query.get(name));
  if (value === null) throw new SimControlError(400, 'invalid_request', `${name} must be a whole number`);
  return value;
}
