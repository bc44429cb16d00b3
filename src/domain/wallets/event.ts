import { type ApiJson, numberField } from '../values/api-json.ts';
import { type Decimal, subtractDecimals } from '../values/decimal.ts';
import { type EventStamp, eventBody } from '../webhooks/event-body.ts';

/** The common fields of both kinds of wallet events. */
interface WalletEvent extends EventStamp {
  /** The address. */
  wallet: string;
  venue: string;
}

/** The data of a `transaction` event. Amounts are exact; a negative `change` left the wallet. */
export interface TransactionEvent extends WalletEvent {
  transactionId: string;
  type: string;
  status: string;
  /** The venue's time of the transaction, epoch milliseconds. */
  atMs: number;
  transfers: readonly { tokenMint: string; tokenSymbol?: string; change: Decimal }[];
  marketId?: string;
  side?: string;
  size?: Decimal;
  price?: Decimal;
  value?: Decimal;
}

/** The data of a `balance_change` event. */
interface BalanceChangeEvent extends WalletEvent {
  tokenMint: string;
  tokenSymbol?: string;
  marketId?: string;
  previousBalance: Decimal;
  currentBalance: Decimal;
  transactionId?: string;
}

/** The delivery body. */
export function transactionBody(event: TransactionEvent): string {
  return eventBody('transaction', event, {
    wallet: event.wallet,
    venue: event.venue,
    transactionId: event.transactionId,
    type: event.type,
    status: event.status,
    timestamp: new Date(event.atMs).toISOString(),
    transfers: event.transfers.map(
      ({ tokenMint, tokenSymbol, change }): ApiJson => ({ tokenMint, tokenSymbol, change: numberField(change) }),
    ),
    marketId: event.marketId,
    side: event.side,
    size: optionalNumber(event.size),
    price: optionalNumber(event.price),
    value: optionalNumber(event.value),
  });
}

/** As above, for a change of a balance. */
export function balanceChangeBody(event: BalanceChangeEvent): string {
  return eventBody('balance_change', event, {
    wallet: event.wallet,
    venue: event.venue,
    tokenMint: event.tokenMint,
    tokenSymbol: event.tokenSymbol,
    marketId: event.marketId,
    previousBalance: numberField(event.previousBalance),
    currentBalance: numberField(event.currentBalance),
    change: numberField(subtractDecimals(event.currentBalance, event.previousBalance)),
    transactionId: event.transactionId,
  });
}

function optionalNumber(value: Decimal | undefined): ApiJson | undefined {
  return value === undefined ? undefined : numberField(value);
}
