import { SimControlError } from '../errors.ts';
import { hashWord } from '../random.ts';
import { Chain, type Execution, slotOf, type Transaction, type TransactionVersion } from './chain.ts';
import { type SimToken, SOL_MINT, tokensOf } from './tokens.ts';
import { NEWEST_VERSION, type NewestVersion, type Population, playSecond, populate } from './traffic.ts';

/** A transfer at the present second. Without `mint`, of native SOL; `units` in the smallest unit, as whole-number text. */
interface TransferRequest {
  readonly from: string;
  readonly to: string;
  readonly mint?: string | undefined;
  readonly units: string;
  readonly fails?: boolean | undefined;
  /** Closes the sender's token account afterwards: its whole amount must be sent. */
  readonly closes?: boolean | undefined;
  /** Default `legacy`. */
  readonly version?: TransactionVersion | undefined;
  /** Total lamports, whole-number text; only from version 1 on. */
  readonly priorityFee?: string | undefined;
}

/** The failure of the next calls of a JSON-RPC method: an error in an answer of status 200, or another status. */
interface RpcFailure {
  readonly method: string;
  readonly code: number;
  readonly message: string;
  /** HTTP status of the answer: 403 blocks the client. Default 200. */
  readonly status?: number | undefined;
  /** Default 1. */
  readonly count?: number | undefined;
}

interface PriceOverride {
  readonly mint: string;
  /** Null: no reliable price. */
  readonly usd: number | null;
  readonly blockId?: number | undefined;
}

/** The controls of the simulated chain, for tests and the control route. */
export interface SolanaControl {
  tokens(): readonly SimToken[];
  people(): readonly string[];
  /** Executes a transfer once it is final; its signature is known at once. @throws SimControlError when it is impossible. */
  transfer(request: TransferRequest): { signature: string };
  /** Sets the seconds until a transaction is final. */
  delayFinality(seconds: number): void;
  /** The next `calls` calls of `getTransaction` find nothing. */
  hideTransactions(calls: number): void;
  failRpc(failure: RpcFailure): void;
  /** Sets the newest version of the chain's own traffic and its share (0 to 1). */
  setNewestVersion(version: 1 | 2, share: number): void;
  setPrice(override: PriceOverride): void;
  /** Raw amounts of an owner by mint, native lamports and wrapped SOL together. */
  holdings(owner: string): ReadonlyMap<string, bigint>;
}

/** After a suspended machine wakes, the chain skips earlier seconds than this. */
const MAX_CATCH_UP_SECONDS = 600;
const HISTORY_SECONDS = 600;
const PRICE_DOMAIN = 79;
const PRICE_SECONDS = 10;
const PRICE_SWING = 0.02;
const TWO_POW_32 = 4_294_967_296;

/** The simulated chain over time: seeded traffic, finality, and the faults of a node. */
export class SolanaNetwork implements SolanaControl {
  readonly chain: Chain;
  private readonly seed: number;
  private readonly nowSecond: () => number;
  private readonly all: readonly SimToken[];
  private readonly population: Population;
  private readonly prices = new Map<string, PriceOverride>();
  private readonly failures: { failure: RpcFailure; left: number }[] = [];
  private readonly queue: { second: number; execute: (second: number) => void }[] = [];
  private finalitySeconds = 0;
  private hidden = 0;
  private playedSecond: number;
  private readonly hasTraffic: boolean;
  private newest: NewestVersion = NEWEST_VERSION;

  constructor(options: {
    seed: number;
    nowSecond: () => number;
    hasTraffic?: boolean | undefined;
    v1Share?: number | undefined;
  }) {
    const { seed, nowSecond, hasTraffic = true, v1Share } = options;
    if (v1Share !== undefined) this.newest = newestOf(1, v1Share);
    this.seed = seed;
    this.nowSecond = nowSecond;
    this.hasTraffic = hasTraffic;
    this.all = tokensOf(seed);
    this.chain = new Chain(seed);
    this.population = populate(this.chain, this.all, seed);
    this.playedSecond = nowSecond() - HISTORY_SECONDS;
    this.catchUp();
  }

  /** The second up to which everything is final, after executing the transfers that were due. */
  catchUp(): number {
    const target = this.nowSecond() - this.finalitySeconds;
    this.playedSecond = Math.max(this.playedSecond, target - MAX_CATCH_UP_SECONDS);
    for (; this.playedSecond < target; this.playedSecond += 1) {
      this.executeDue(this.playedSecond);
      if (!this.hasTraffic) continue;
      playSecond(this.chain, this.population, this.all, this.seed, this.playedSecond, this.newest);
    }
    this.executeDue(target);
    return this.playedSecond;
  }

  /** The newest final slot. */
  slot(): number {
    return Math.max(slotOf(this.catchUp()), this.chain.transactions.at(-1)?.slot ?? 0);
  }

  tokens(): readonly SimToken[] {
    return this.all;
  }

  people(): readonly string[] {
    return this.population.people;
  }

  transfer(request: TransferRequest): { signature: string } {
    const second = this.nowSecond();
    this.catchUp();
    const { priorityFee = '0' } = request;
    if (!/^\d{1,20}$/.test(request.units) || !/^\d{1,20}$/.test(priorityFee))
      throw new SimControlError(400, 'invalid_units', 'units and priorityFee: whole numbers as text');
    const token = this.all.find(({ mint }) => mint === request.mint);
    if (request.mint !== undefined && !token) throw new SimControlError(404, 'mint_not_found', 'no such mint');
    const units = BigInt(request.units);
    let done: Transaction | undefined;
    const execution: Omit<Execution, 'second'> = {
      payer: request.from,
      ...(request.fails !== undefined && { fails: request.fails }),
      ...(request.version !== undefined && { version: request.version }),
      priorityFee: BigInt(priorityFee),
      work: (steps) => {
        if (!token) return steps.sol(request.from, request.to, units);
        const [from] = this.accountsOf(request.from, token);
        if (!from) throw new SimControlError(409, 'insufficient_funds', 'nothing of this mint');
        const [to = steps.create(request.from, request.to, token)] = this.accountsOf(request.to, token);
        steps.token(from, to, units);
        if (request.closes) steps.close(from, request.from);
      },
    };
    if (this.finalitySeconds === 0) {
      done = this.chain.execute({ second, ...execution });
      return { signature: done.signature };
    }
    if (this.hasTraffic)
      throw new SimControlError(409, 'has_traffic', 'with traffic, its signature is not known in advance');
    this.queue.push({ second, execute: (at) => void this.chain.execute({ second: at, ...execution }) });
    return { signature: this.chain.signatureAt(this.chain.transactions.length + this.queue.length - 1) };
  }

  delayFinality(seconds: number): void {
    if (!Number.isInteger(seconds) || seconds < 0) throw new SimControlError(400, 'invalid_seconds', 'a whole number');
    this.finalitySeconds = seconds;
  }

  hideTransactions(calls: number): void {
    this.hidden = calls;
  }

  failRpc(failure: RpcFailure): void {
    this.failures.push({ failure, left: failure.count ?? 1 });
  }

  setNewestVersion(version: 1 | 2, share: number): void {
    this.catchUp();
    this.newest = newestOf(version, share);
  }

  setPrice(override: PriceOverride): void {
    if (!this.all.some(({ mint }) => mint === override.mint)) {
      throw new SimControlError(404, 'mint_not_found', 'no such mint');
    }
    this.prices.set(override.mint, override);
  }

  holdings(owner: string): ReadonlyMap<string, bigint> {
    this.catchUp();
    const sums = new Map<string, bigint>([[SOL_MINT, this.chain.balanceOf(owner)]]);
    for (const { token, amount } of this.chain.accountsOf(owner)) {
      sums.set(token.mint, (sums.get(token.mint) ?? 0n) + amount);
    }
    return sums;
  }

  /** The failure of this call, if any; it then counts as used. */
  takeFailure(method: string): RpcFailure | undefined {
    const found = this.failures.find(({ failure, left }) => left > 0 && failure.method === method);
    if (found) found.left -= 1;
    return found?.failure;
  }

  /** Whether this `getTransaction` is hidden. */
  takeHidden(): boolean {
    if (this.hidden === 0) return false;
    this.hidden -= 1;
    return true;
  }

  /** Jupiter's price of a mint; undefined without a reliable price, or for an unknown mint. */
  priceOf(mint: string): { usd: number; blockId: number; decimals: number } | undefined {
    const token = this.all.find((each) => each.mint === mint);
    const override = this.prices.get(mint);
    const usd = override ? override.usd : this.walk(token);
    if (token === undefined || usd === undefined || usd === null) return undefined;
    return { usd, blockId: override?.blockId ?? this.slot(), decimals: token.decimals };
  }

  private walk(token: SimToken | undefined): number | undefined {
    if (token?.usd === undefined) return undefined;
    const draw = hashWord(
      PRICE_DOMAIN,
      this.seed,
      this.all.indexOf(token),
      Math.floor(this.nowSecond() / PRICE_SECONDS),
    );
    return Number((token.usd * (1 + (draw / TWO_POW_32 - 0.5) * PRICE_SWING)).toPrecision(12));
  }

  private accountsOf(owner: string, token: SimToken) {
    return this.chain.accountsOf(owner).filter((account) => account.token.mint === token.mint);
  }

  private executeDue(second: number): void {
    while (this.queue[0] !== undefined && this.queue[0].second <= second) {
      const due = this.queue.shift();
      due?.execute(due.second);
    }
  }
}

function newestOf(version: 1 | 2, share: number): NewestVersion {
  if (!(share >= 0 && share <= 1)) throw new SimControlError(400, 'invalid_share', 'share: a number from 0 to 1');
  return { version, perMillion: Math.round(share * 1_000_000) };
}
