import { hashWord } from '../random.ts';
import { AGGRESSOR, FIRST_RETAIL, RETAIL_WALLETS } from '../traders/wallets.ts';
import { transactionHashOf, type Wallet, walletOf } from './identity.ts';
import { type Market, UNITS } from './market.ts';
import type { Intent, Trade } from './trade-tape.ts';
import type { World } from './world.ts';

type ActivityType = 'TRADE' | 'SPLIT' | 'REDEEM' | 'DEPOSIT';

/** One row of a wallet's activity. Sizes in millionths of a share, cash in millionths of a dollar. */
export interface WalletActivity {
  readonly second: number;
  readonly type: ActivityType;
  readonly transactionHash: string;
  readonly size: number;
  readonly cash: number;
  readonly market?: Market;
  /** Trades only. */
  readonly intent?: Intent;
  /** Trades only, in ticks of the outcome. */
  readonly ticks?: number;
}

/** A wallet's holding of one outcome, in millionths of a share. */
export interface WalletPosition {
  readonly market: Market;
  readonly outcomeIndex: 0 | 1;
  readonly size: number;
}

type Holding = [number, number];

const LEDGER_DOMAIN = 41;
const KEPT_ROWS = 5_000;
const DEPOSIT_EVERY_SECONDS = 900;
const REDEEMED_AFTER_SECONDS = 5;
/** Sequence numbers of transactions that are not orders. */
const FIRST_DEPOSIT_NO = 1_000_000_000;
const FIRST_REDEMPTION_NO = 2_000_000_000;

/**
 * The actions and holdings of each wallet, from the tape; cash is unlimited. A seller without shares first splits cash into
 * both outcomes, in the same transaction; some fills are reported as two equal rows; winning shares are redeemed soon after
 * the resolution, and losing ones disappear with them; every quarter of an hour some wallet deposits.
 */
export class WalletLedger {
  private readonly world: World;
  private readonly numbers = new Map<string, number>();
  private readonly rows = new Map<number, WalletActivity[]>();
  private readonly holdings = new Map<number, Map<number, Holding>>();
  private nextTrade: number;
  private readonly waiting = new Set<number>();

  constructor(world: World) {
    this.world = world;
    this.nextTrade = world.tape.firstIndex;
    for (let no = AGGRESSOR; no < FIRST_RETAIL + RETAIL_WALLETS; no += 1) this.numbers.set(this.wallet(no).address, no);
  }

  /** Every action of this address, oldest first; empty for an unknown address. */
  activity(address: string): { wallet: Wallet; rows: readonly WalletActivity[] } | undefined {
    const no = this.numbers.get(address);
    if (no === undefined) return undefined;
    this.catchUp();
    const rows = [...(this.rows.get(no) ?? []), ...this.deposits(no)];
    return { wallet: this.wallet(no), rows: rows.sort((a, b) => a.second - b.second) };
  }

  /** Every holding of this address; empty for an unknown address. */
  positions(address: string): { wallet: Wallet; rows: readonly WalletPosition[] } | undefined {
    const no = this.numbers.get(address);
    if (no === undefined) return undefined;
    this.catchUp();
    const rows = [...(this.holdings.get(no) ?? [])].flatMap(([marketNo, sizes]) => {
      const market = this.world.markets[marketNo];
      if (market === undefined) return [];
      return ([0, 1] as const).flatMap((outcomeIndex) => {
        const size = sizes[outcomeIndex];
        return size > 0 ? [{ market, outcomeIndex, size }] : [];
      });
    });
    return { wallet: this.wallet(no), rows };
  }

  private wallet(no: number): Wallet {
    return walletOf(this.world.options.seed, no);
  }

  private catchUp(): void {
    const { tape } = this.world;
    for (const trade of tape.from(this.nextTrade, Number.POSITIVE_INFINITY)) {
      const market = this.world.markets[trade.marketNo];
      if (market === undefined) continue;
      this.waiting.add(trade.marketNo);
      this.book(trade, market, trade.taker, trade.takerIntent);
      this.book(trade, market, trade.maker, trade.makerIntent);
    }
    this.nextTrade = tape.nextIndex;
    for (const marketNo of this.waiting) {
      const market = this.world.markets[marketNo];
      if (market?.phase !== 'resolved' || market.winner === undefined || market.closedSecond === undefined) continue;
      const second = market.closedSecond + REDEEMED_AFTER_SECONDS;
      if (second > this.world.second) continue;
      this.waiting.delete(marketNo);
      this.redeem(market, market.winner, second);
    }
  }

  private book(trade: Trade, market: Market, walletNo: number, intent: Intent): void {
    const { second, size } = trade;
    const transactionHash = transactionHashOf(this.world.options.seed, trade.orderNo);
    const holding = this.holding(walletNo, market.spec.no);
    const missing = intent.side === 'SELL' ? size - holding[intent.outcomeIndex] : 0;
    if (missing > 0) {
      holding[0] += missing;
      holding[1] += missing;
      this.add(walletNo, { second, type: 'SPLIT', transactionHash, size: missing, cash: missing, market });
    }
    holding[intent.outcomeIndex] += intent.side === 'BUY' ? size : -size;
    const ticks = market.yesTicks(trade.ticks, intent.outcomeIndex);
    const isTwice = size % 2 === 0 && hashWord(LEDGER_DOMAIN, trade.index) % 8 === 0;
    const each = isTwice ? size / 2 : size;
    const cash = Math.floor((each * ticks) / market.spec.ticksPerUnit);
    const row: WalletActivity = { second, type: 'TRADE', transactionHash, size: each, cash, market, intent, ticks };
    this.add(walletNo, row);
    if (isTwice) this.add(walletNo, row);
  }

  private redeem(market: Market, winner: 0 | 1, second: number): void {
    const { seed } = this.world.options;
    const { no } = market.spec;
    for (const [walletNo, markets] of this.holdings) {
      const holding = markets.get(no);
      if (holding === undefined) continue;
      markets.delete(no);
      const won = holding[winner];
      if (won === 0) continue;
      const transactionHash = transactionHashOf(seed, FIRST_REDEMPTION_NO + no * 1_000 + walletNo);
      this.add(walletNo, { second, type: 'REDEEM', transactionHash, size: won, cash: won, market });
    }
  }

  private deposits(walletNo: number): WalletActivity[] {
    const { seed, nowSecond, historySeconds } = this.world.options;
    const found: WalletActivity[] = [];
    const offset = hashWord(LEDGER_DOMAIN, walletNo) % DEPOSIT_EVERY_SECONDS;
    const first = Math.ceil((nowSecond - historySeconds) / DEPOSIT_EVERY_SECONDS);
    for (let at = first; ; at += 1) {
      const second = at * DEPOSIT_EVERY_SECONDS + offset;
      if (second > this.world.second) return found;
      const cash = (50 + (hashWord(LEDGER_DOMAIN, walletNo, at) % 200)) * UNITS;
      const transactionHash = transactionHashOf(seed, FIRST_DEPOSIT_NO + walletNo * 100_000 + (at % 100_000));
      found.push({ second, type: 'DEPOSIT', transactionHash, size: cash, cash });
    }
  }

  private holding(walletNo: number, marketNo: number): Holding {
    let markets = this.holdings.get(walletNo);
    if (markets === undefined) {
      markets = new Map();
      this.holdings.set(walletNo, markets);
    }
    let holding = markets.get(marketNo);
    if (holding === undefined) {
      holding = [0, 0];
      markets.set(marketNo, holding);
    }
    return holding;
  }

  private add(walletNo: number, row: WalletActivity): void {
    const rows = this.rows.get(walletNo);
    if (rows === undefined) this.rows.set(walletNo, [row]);
    else {
      rows.push(row);
      if (rows.length > 2 * KEPT_ROWS) rows.splice(0, KEPT_ROWS);
    }
  }
}
