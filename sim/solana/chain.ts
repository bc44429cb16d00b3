import { SimControlError } from '../errors.ts';
import { addressOf, RENT_LAMPORTS, type SimToken, SOL_MINT, SYSTEM_PROGRAM, signatureOf } from './tokens.ts';

/** A token account; the lamports of a wrapped-SOL account include its amount. */
export interface TokenAccount {
  readonly address: string;
  readonly owner: string;
  readonly token: SimToken;
  amount: bigint;
}

export interface TokenBalance {
  readonly accountIndex: number;
  readonly owner: string;
  readonly token: SimToken;
  readonly amount: bigint;
}

/** Version 2 does not exist yet: it represents a next version that clients do not know. */
export type TransactionVersion = 'legacy' | 0 | 1 | 2;

/** One executed transaction; balances have the indexes of `accounts`. */
export interface Transaction {
  readonly index: number;
  readonly signature: string;
  readonly slot: number;
  readonly second: number;
  readonly error: string | undefined;
  readonly fee: bigint;
  readonly version: TransactionVersion;
  /** Total lamports. From version 1 on, it is a field of the message; before, it is 0. */
  readonly priorityFee: bigint;
  readonly accounts: readonly string[];
  /** The number of accounts from a lookup table: the last ones. */
  readonly loaded: number;
  readonly before: readonly bigint[];
  readonly after: readonly bigint[];
  readonly tokensBefore: readonly TokenBalance[];
  readonly tokensAfter: readonly TokenBalance[];
}

export interface Execution {
  readonly second: number;
  /** The signer, which pays the fee. */
  readonly payer: string;
  readonly version?: TransactionVersion;
  /** Total lamports; only from version 1 on. Default 0. */
  readonly priorityFee?: bigint;
  /** Accounts that are named and do not change. */
  readonly names?: readonly string[];
  /** Fails after the work: only the fee stays. */
  readonly fails?: boolean;
  /** Changes balances through the steps. */
  work(steps: Steps): void;
}

/** The steps of a transaction. A token step names both accounts and the owner of the first, but not the owner of the second. */
interface Steps {
  sol(from: string, to: string, lamports: bigint): void;
  token(from: TokenAccount, to: TokenAccount, amount: bigint): void;
  wrap(owner: string, account: TokenAccount, lamports: bigint): void;
  /** Names the owner. */
  create(payer: string, owner: string, token: SimToken): TokenAccount;
  /** The lamports of a wrapped-SOL account move with its rent; other accounts must be empty. */
  close(account: TokenAccount, to: string): void;
}

/** The fee of one signature. */
const FEE_LAMPORTS = 5_000n;
const SLOTS_PER_SECOND = 2.5;
const FIRST_SECOND = 1_600_000_000;

export function slotOf(second: number): number {
  return Math.floor((second - FIRST_SECOND) * SLOTS_PER_SECOND);
}

/** Whether messages of this version have a `transactionConfig`, and no lookup tables. */
export function isConfigured(version: TransactionVersion): version is 1 | 2 {
  return version === 1 || version === 2;
}

/** Lamports, token accounts and all transactions: only transactions change balances. */
export class Chain {
  readonly transactions: Transaction[] = [];
  readonly bySignature = new Map<string, Transaction>();
  readonly lamports = new Map<string, bigint>();
  readonly tokenAccounts = new Map<string, TokenAccount>();
  private readonly seed: number;
  private readonly namedIn = new Map<string, Transaction[]>();
  private madeAccounts = 0;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** Adds lamports before the first transaction. */
  endow(address: string, lamports: bigint): void {
    this.lamports.set(address, this.balanceOf(address) + lamports);
  }

  /** Adds an account with tokens before the first transaction. */
  endowTokens(owner: string, token: SimToken, amount: bigint): TokenAccount {
    const account = this.put({ owner, token, amount });
    this.lamports.set(account.address, RENT_LAMPORTS + (token.mint === SOL_MINT ? amount : 0n));
    return account;
  }

  balanceOf(address: string): bigint {
    return this.lamports.get(address) ?? 0n;
  }

  accountsOf(owner: string): TokenAccount[] {
    return [...this.tokenAccounts.values()].filter((account) => account.owner === owner);
  }

  /** The transactions that name an account, oldest first. */
  naming(address: string): readonly Transaction[] {
    return this.namedIn.get(address) ?? [];
  }

  signatureAt(index: number): string {
    return signatureOf(this.seed, index);
  }

  /** @throws SimControlError when an account would become negative; the chain is then unchanged. */
  execute({ second, payer, version = 'legacy', names = [], fails = false, work, ...rest }: Execution): Transaction {
    const priorityFee = isConfigured(version) ? (rest.priorityFee ?? 0n) : 0n;
    const fee = FEE_LAMPORTS + priorityFee;
    const lamportsBefore = new Map(this.lamports);
    const tokensBefore = new Map([...this.tokenAccounts].map(([address, account]) => [address, { ...account }]));
    const index = this.transactions.length;
    const touched = new Set([payer]);
    const take = (address: string, lamports: bigint) => {
      touched.add(address);
      this.lamports.set(address, this.balanceOf(address) - lamports);
    };
    let refusal: unknown;
    try {
      work(this.steps(touched, take));
    } catch (error) {
      refusal = error;
    }
    const isShort = [...touched].some((address) => this.balanceOf(address) < (address === payer ? fee : 0n));
    if (refusal !== undefined || isShort || fails) this.restore(lamportsBefore, tokensBefore);
    if (refusal !== undefined) throw refusal;
    if (isShort) throw new SimControlError(409, 'insufficient_funds', 'an account has too few lamports');
    take(payer, fee);
    for (const name of [...names, SYSTEM_PROGRAM]) touched.add(name);
    const accounts = [...touched];
    const rows = (source: ReadonlyMap<string, TokenAccount>): TokenBalance[] =>
      accounts.flatMap((address, accountIndex) => {
        const account = source.get(address);
        return account ? [{ accountIndex, owner: account.owner, token: account.token, amount: account.amount }] : [];
      });
    const transaction: Transaction = {
      index,
      signature: this.signatureAt(index),
      slot: Math.max(slotOf(second), this.transactions.at(-1)?.slot ?? 0),
      second,
      error: fails ? 'Custom' : undefined,
      fee,
      version,
      priorityFee,
      accounts,
      loaded: version === 0 ? Math.min(2, accounts.length - 1) : 0,
      before: accounts.map((address) => lamportsBefore.get(address) ?? 0n),
      after: accounts.map((address) => this.balanceOf(address)),
      tokensBefore: rows(tokensBefore),
      tokensAfter: rows(this.tokenAccounts),
    };
    this.add(transaction);
    return transaction;
  }

  private add(transaction: Transaction): void {
    this.transactions.push(transaction);
    this.bySignature.set(transaction.signature, transaction);
    for (const address of transaction.accounts) {
      const list = this.namedIn.get(address);
      if (list) list.push(transaction);
      else this.namedIn.set(address, [transaction]);
    }
  }

  private put(account: Omit<TokenAccount, 'address'>): TokenAccount {
    this.madeAccounts += 1;
    const made = { address: addressOf(this.seed, 2, this.madeAccounts), ...account };
    this.tokenAccounts.set(made.address, made);
    return made;
  }

  private restore(lamports: ReadonlyMap<string, bigint>, tokens: ReadonlyMap<string, TokenAccount>): void {
    this.lamports.clear();
    for (const [address, amount] of lamports) this.lamports.set(address, amount);
    for (const address of [...this.tokenAccounts.keys()]) if (!tokens.has(address)) this.tokenAccounts.delete(address);
    // The objects stay the same, because callers keep references to accounts.
    for (const [address, was] of tokens) {
      const account = this.tokenAccounts.get(address) ?? was;
      account.amount = was.amount;
      this.tokenAccounts.set(address, account);
    }
  }

  private steps(touched: Set<string>, take: (address: string, lamports: bigint) => void): Steps {
    const move = (from: string, to: string, lamports: bigint) => {
      take(from, lamports);
      take(to, -lamports);
    };
    const isNative = (account: TokenAccount) => account.token.mint === SOL_MINT;
    return {
      sol: move,
      token: (from, to, amount) => {
        if (from.token.mint !== to.token.mint) throw new SimControlError(400, 'wrong_mint', 'accounts of two mints');
        if (amount < 0n || from.amount < amount) throw new SimControlError(409, 'insufficient_funds', 'too few tokens');
        for (const address of [from.owner, from.address, to.address]) touched.add(address);
        from.amount -= amount;
        to.amount += amount;
        if (isNative(from)) move(from.address, to.address, amount);
      },
      wrap: (owner, account, lamports) => {
        if (!isNative(account)) throw new SimControlError(400, 'wrong_mint', 'only SOL can be wrapped');
        move(owner, account.address, lamports);
        account.amount += lamports;
      },
      create: (payer, owner, token) => {
        const account = this.put({ owner, token, amount: 0n });
        touched.add(owner);
        move(payer, account.address, RENT_LAMPORTS);
        return account;
      },
      close: (account, to) => {
        if (account.amount > 0n && !isNative(account)) {
          throw new SimControlError(409, 'not_empty', 'only an empty account can be closed');
        }
        touched.add(account.owner);
        move(account.address, to, this.balanceOf(account.address));
        this.tokenAccounts.delete(account.address);
      },
    };
  }
}
