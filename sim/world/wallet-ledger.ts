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

/** A wallet that was asked for. */
interface Account {
  readonly no: number;
  readonly rows: WalletActivity[];
  /** By the number of the market. */
  readonly holdings: Map<number, Holding>;
  nextTrade: number;
}

const LEDGER_DOMAIN = 41;
const KEPT_ROWS = 5_000;
const DEPOSIT_EVERY_SECONDS = 900;
const REDEEMED_AFTER_SECONDS = 5;
/** Sequence numbers of transactions that are not orders. */
const FIRST_DEPOSIT_NO = 1_000_000_000;
const FIRST_REDEMPTION_NO = 2_000_000_000;

/**
 * The actions and holdings of each wallet, read from the tape when it is asked for; cash is unlimited. A seller without shares first splits cash into
 * both outcomes, in the same transaction; some fills are reported as two equal rows; winning shares are redeemed soon after
 * the resolution, and losing ones disappear with them; every quarter of an hour some wallet deposits.
 */
export class WalletLedger {
  private readonly world: World;
  private readonly numbers = new Map<string, number>();
  private readonly accounts = new Map<number, Account>();

  constructor(world: World) {
    this.world = world;
    for (let no = AGGRESSOR; no < FIRST_RETAIL + RETAIL_WALLETS; no += 1) this.numbers.set(this.wallet(no).address, no);
  }

  /** Every action of this address, oldest first; empty for an unknown address. */
  activity(address: string): { wallet: Wallet; rows: readonly WalletActivity[] } | undefined {
    const no = this.numbers.get(address);
    if (no === undefined) return undefined;
    const rows = [...this.account(no).rows, ...this.deposits(no)];
    return { wallet: this.wallet(no), rows: rows.sort((a, b) => a.second - b.second) };
  }

  /** Every holding of this address; empty for an unknown address. */
  positions(address: string): { wallet: Wallet; rows: readonly WalletPosition[] } | undefined {
    const no = this.numbers.get(address);
    if (no === undefined) return undefined;
    const rows = [...this.account(no).holdings].flatMap(([marketNo, sizes]) => {
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

  /** The account of a wallet, with everything that happened until now. */
  private account(no: number): Account {
    const account = this.accounts.get(no) ?? { no, rows: [], holdings: new Map(), nextTrade: 0 };
    this.accounts.set(no, account);
    const { tape, markets } = this.world;
    for (const trade of tape.oldestFirst(account.nextTrade)) {
      const market = markets[trade.marketNo];
      if (market === undefined) continue;
      if (trade.taker === no) this.book(account, trade, market, trade.takerIntent);
      if (trade.maker === no) this.book(account, trade, market, trade.makerIntent);
    }
    account.nextTrade = tape.nextIndex;
    for (const [marketNo, holding] of account.holdings) {
      const market = markets[marketNo];
      if (market?.phase !== 'resolved' || market.winner === undefined || market.closedSecond === undefined) continue;
      const second = market.closedSecond + REDEEMED_AFTER_SECONDS;
      if (second > this.world.second) continue;
      account.holdings.delete(marketNo);
      this.redeem(account, market, holding[market.winner], second);
    }
    return account;
  }

  private book(account: Account, trade: Trade, market: Market, intent: Intent): void {
    const { second, size } = trade;
    const transactionHash = transactionHashOf(this.world.options.seed, trade.orderNo);
    const holding = account.holdings.get(market.spec.no) ?? [0, 0];
    account.holdings.set(market.spec.no, holding);
    const missing = intent.side === 'SELL' ? size - holding[intent.outcomeIndex] : 0;
    if (missing > 0) {
      holding[0] += missing;
      holding[1] += missing;
      add(account, { second, type: 'SPLIT', transactionHash, size: missing, cash: missing, market });
    }
    holding[intent.outcomeIndex] += intent.side === 'BUY' ? size : -size;
    const ticks = market.yesTicks(trade.ticks, intent.outcomeIndex);
    const isTwice = size % 2 === 0 && hashWord(LEDGER_DOMAIN, trade.index) % 8 === 0;
    const each = isTwice ? size / 2 : size;
    const cash = Math.floor((each * ticks) / market.spec.ticksPerUnit);
    const row: WalletActivity = { second, type: 'TRADE', transactionHash, size: each, cash, market, intent, ticks };
    add(account, row);
    if (isTwice) add(account, row);
  }

  private redeem(account: Account, market: Market, won: number, second: number): void {
    if (won === 0) return;
    const { seed } = this.world.options;
    const transactionHash = transactionHashOf(seed, FIRST_REDEMPTION_NO + market.spec.no * 1_000 + account.no);
    add(account, { second, type: 'REDEEM', transactionHash, size: won, cash: won, market });
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
}

function add({ rows }: Account, row: WalletActivity): void {
  rows.push(row);
  if (rows.length > 2 * KEPT_ROWS) rows.splice(0, KEPT_ROWS);
}
