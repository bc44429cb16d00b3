import { isVisitor } from '../context.ts';
import { ApiError } from '../errors.ts';

/** The limits of one account in one API process. */
export interface StreamLimits {
  /** Open streams of all accounts together. */
  readonly maxConnections: number;
  readonly connectionsPerAccount: number;
  readonly subscriptionsPerAccount: number;
  /** Sent messages of an account. 0: no limit. */
  readonly messagesPerSecond: number;
}

/** Orders of the channel `executable` on all connections of one account: ten subscriptions of the largest kind. */
const ORDERS_PER_ACCOUNT = 10_000;
/** The seconds after which a client may try again when all connections are in use. */
const RETRY_SECONDS = 5;

/** 429 `rate_limited` with `Retry-After`. */
export function tooManyStreams(message: string): ApiError {
  return new ApiError('rate_limited', message, { headers: { 'Retry-After': String(RETRY_SECONDS) } });
}

/** The present use of one account. */
export interface AccountUse {
  /** Counts a subscription. False when the account has as many as it may have. */
  addSubscription(): boolean;
  removeSubscription(): void;
  /** Counts orders of the channel `executable`. */
  addOrders(count: number): void;
  removeOrders(count: number): void;
  /** The number of messages that the account may get now, at most `wanted`. Counts them. */
  takeMessages(wanted: number): number;
  /** Takes back the count of messages that were not sent. */
  giveBackMessages(count: number): void;
  /** Ends the use of a connection. */
  release(): void;
}

/** Counts connections, subscriptions and messages of accounts in this process. */
export interface AccountUses {
  readonly connections: number;
  /** Counts a connection of the account. @throws ApiError `rate_limited` */
  open(accountId: bigint): AccountUse;
  /** The open connections and subscriptions of an account in this process. */
  of(accountId: bigint): OpenOfAccount;
}

/** The open connections and subscriptions of an account in one process, with their limits. */
export interface OpenOfAccount {
  connections: number;
  subscriptions: number;
  orders: number;
  connectionsLimit: number;
  subscriptionsLimit: number;
  ordersLimit: number;
}

interface Counts {
  connections: number;
  subscriptions: number;
  orders: number;
  tokens: number;
  filledAtMs: number;
}

/** `nowMs` is a monotonic clock. */
export function createAccountUses(limits: StreamLimits, nowMs: () => number = () => performance.now()): AccountUses {
  const accounts = new Map<bigint, Counts>();
  let connections = 0;

  return {
    get connections() {
      return connections;
    },
    of(accountId) {
      const { connections: open = 0, subscriptions = 0, orders = 0 } = accounts.get(accountId) ?? {};
      const { connectionsPerAccount, subscriptionsPerAccount } = limits;
      return {
        connections: open,
        subscriptions,
        orders,
        connectionsLimit: connectionsPerAccount,
        subscriptionsLimit: subscriptionsPerAccount,
        ordersLimit: ORDERS_PER_ACCOUNT,
      };
    },
    open(accountId) {
      const counts = accounts.get(accountId) ?? {
        connections: 0,
        subscriptions: 0,
        orders: 0,
        tokens: limits.messagesPerSecond,
        filledAtMs: nowMs(),
      };
      if (connections >= limits.maxConnections) throw tooManyStreams('this process has as many streams as it may have');
      if (counts.connections >= limits.connectionsPerAccount) {
        if (isVisitor({ accountId }))
          throw tooManyStreams('too many visitors follow this market; sign in with a key, or come back later');
        throw tooManyStreams(`this account has a limit of ${limits.connectionsPerAccount} open streams`);
      }
      accounts.set(accountId, counts);
      counts.connections += 1;
      connections += 1;
      let isOpen = true;
      let ofThis = 0;
      return {
        addSubscription() {
          if (counts.subscriptions >= limits.subscriptionsPerAccount) return false;
          counts.subscriptions += 1;
          ofThis += 1;
          return true;
        },
        removeSubscription() {
          // The end of the connection has returned all of its subscriptions.
          if (!isOpen) return;
          counts.subscriptions -= 1;
          ofThis -= 1;
        },
        addOrders(count) {
          counts.orders += count;
        },
        removeOrders(count) {
          counts.orders -= count;
        },
        takeMessages(wanted) {
          if (limits.messagesPerSecond === 0) return wanted;
          const now = nowMs();
          const refilled = counts.tokens + ((now - counts.filledAtMs) / 1_000) * limits.messagesPerSecond;
          counts.tokens = Math.min(limits.messagesPerSecond, refilled);
          counts.filledAtMs = now;
          const taken = Math.min(wanted, Math.floor(counts.tokens));
          counts.tokens -= taken;
          return taken;
        },
        giveBackMessages(count) {
          counts.tokens += count;
        },
        release() {
          if (!isOpen) return;
          isOpen = false;
          counts.subscriptions -= ofThis;
          counts.connections -= 1;
          connections -= 1;
          if (counts.connections === 0) accounts.delete(accountId);
        },
      };
    },
  };
}
