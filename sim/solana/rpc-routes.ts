import { isPublicKey } from '../../src/domain/values/base58.ts';
import { json, type Reply, type SimRequest } from '../server/reply.ts';
import type { SolanaNetwork } from './network.ts';
import { TOKEN_2022_PROGRAM, TOKEN_PROGRAM } from './tokens.ts';
import { parsedTransaction, signatureRow, tokenAccountRow } from './wire.ts';

const MAX_SIGNATURES = 1_000;
const MAX_BATCH = 10;

/** A call that the node refuses; the status of the answer is 200, unless a failure sets another one. */
class RpcRefusal extends Error {
  readonly code: number;
  readonly status: number;

  constructor(code: number, message: string, status = 200) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

type Config = Readonly<Record<string, unknown>>;
type Method = (network: SolanaNetwork, params: readonly unknown[]) => unknown;

const METHODS: Readonly<Record<string, Method>> = {
  getHealth: () => 'ok',
  getSlot: (network) => network.slot(),
  getBalance: (network, [address]) => atSlot(network, Number(network.chain.balanceOf(keyOf(address)))),
  getSignaturesForAddress: listSignatures,
  getTransaction,
  getTokenAccountsByOwner: listTokenAccounts,
};

/** `POST /solana`: the JSON-RPC of a node, everything at `finalized`. */
export function rpcRoutes(network: SolanaNetwork): (request: SimRequest) => Reply | undefined {
  return ({ method, body }) => {
    if (method !== 'POST') return undefined;
    network.catchUp();
    const parsed = parse(body);
    if (parsed === undefined) return json(errorAnswer(null, new RpcRefusal(-32700, 'Parse error')));
    if (!Array.isArray(parsed)) {
      const { status, body: answered } = answer(network, parsed);
      return json(answered, status);
    }
    if (parsed.length > MAX_BATCH) return json(errorAnswer(null, new RpcRefusal(-32600, 'Batch size too large')));
    return json(parsed.map((each) => answer(network, each).body));
  };
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function answer(network: SolanaNetwork, call: unknown): { status: number; body: unknown } {
  const { id = null, method, params } = Object(call) as { id?: unknown; method?: unknown; params?: unknown };
  try {
    const name = String(method);
    const failure = network.takeFailure(name);
    if (failure) throw new RpcRefusal(failure.code, failure.message, failure.status);
    const run = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
    if (!run) throw new RpcRefusal(-32601, 'Method not found');
    const result = run(network, Array.isArray(params) ? params : []);
    return { status: 200, body: { jsonrpc: '2.0', result, id } };
  } catch (error) {
    if (error instanceof RpcRefusal) return { status: error.status, body: errorAnswer(id, error) };
    throw error;
  }
}

function errorAnswer(id: unknown, { code, message }: RpcRefusal): unknown {
  return { jsonrpc: '2.0', error: { code, message }, id };
}

function atSlot(network: SolanaNetwork, value: unknown): unknown {
  return { context: { apiVersion: '3.0.6', slot: network.slot() }, value };
}

function keyOf(address: unknown): string {
  if (typeof address === 'string' && isPublicKey(address)) return address;
  throw new RpcRefusal(-32602, 'Invalid param: Invalid');
}

function configOf(network: SolanaNetwork, config: unknown): Config {
  const { commitment = 'finalized', minContextSlot, ...rest } = Object(config) as Config;
  if (commitment !== 'finalized') throw new RpcRefusal(-32602, 'only finalized is simulated');
  if (typeof minContextSlot === 'number' && minContextSlot > network.slot()) {
    throw new RpcRefusal(-32016, 'Minimum context slot has not been reached');
  }
  return rest;
}

function listSignatures(network: SolanaNetwork, [address, config]: readonly unknown[]): unknown {
  const { limit = MAX_SIGNATURES, before, until } = configOf(network, config);
  if (!Number.isInteger(limit) || Number(limit) < 1 || Number(limit) > MAX_SIGNATURES) {
    throw new RpcRefusal(-32602, `Invalid limit; max ${MAX_SIGNATURES}`);
  }
  const newestFirst = [...network.chain.naming(keyOf(address))].reverse();
  const upper = typeof before === 'string' ? indexOf(network, before) : Number.POSITIVE_INFINITY;
  const lower = typeof until === 'string' ? (indexOf(network, until) ?? -1) : -1;
  // An unknown `before` gives no rows, like a node that has not reached it.
  if (upper === undefined) return [];
  const found = newestFirst.filter(({ index }) => index < upper && index > lower);
  return found.slice(0, Number(limit)).map(signatureRow);
}

function indexOf(network: SolanaNetwork, signature: string): number | undefined {
  return network.chain.bySignature.get(signature)?.index;
}

function getTransaction(network: SolanaNetwork, [signature, config]: readonly unknown[]): unknown {
  const { encoding, maxSupportedTransactionVersion } = configOf(network, config);
  if (encoding !== 'jsonParsed') throw new RpcRefusal(-32602, 'only jsonParsed is simulated');
  const highest = versionOf(maxSupportedTransactionVersion);
  const found = network.chain.bySignature.get(String(signature));
  if (!found || network.takeHidden()) return null;
  if (found.version !== 'legacy' && (highest === undefined || highest < found.version)) {
    const message =
      `Transaction version (${found.version}) is not supported by the requesting client. Please try the request again ` +
      `with the following configuration parameter: "maxSupportedTransactionVersion": ${found.version}`;
    throw new RpcRefusal(-32015, message);
  }
  return parsedTransaction(found, highest !== undefined);
}

/** The node reads it as a byte. */
function versionOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 255) return value;
  throw new RpcRefusal(-32602, 'Invalid params: invalid type: maxSupportedTransactionVersion, expected u8.');
}

function listTokenAccounts(network: SolanaNetwork, [owner, filter, config]: readonly unknown[]): unknown {
  const { encoding } = configOf(network, config);
  if (encoding !== 'jsonParsed') throw new RpcRefusal(-32602, 'only jsonParsed is simulated');
  const { programId } = Object(filter) as { programId?: unknown };
  if (programId !== TOKEN_PROGRAM && programId !== TOKEN_2022_PROGRAM) {
    throw new RpcRefusal(-32602, 'Invalid param: unrecognized Token program id');
  }
  const accounts = network.chain.accountsOf(keyOf(owner));
  return atSlot(network, accounts.filter(({ token }) => token.programId === programId).map(tokenAccountRow));
}
