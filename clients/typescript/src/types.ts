import type { DecimalType, WithDecimals, WithNumbers } from './decimals.ts';
import type { components } from './schema.ts';

type Schemas = components['schemas'];

export type Venue = Schemas['Venue'];
export type ArchiveFile = Schemas['ArchiveFile'];
export type CoverageHour<D extends DecimalType = number> = WithDecimals<Schemas['CoverageHour'], D>;
export type Market<D extends DecimalType = number> = WithDecimals<Schemas['Market'], D>;
export type MarketEvent<D extends DecimalType = number> = WithDecimals<Schemas['MarketEvent'], D>;
export type MarketEventWithMarkets<D extends DecimalType = number> = WithDecimals<Schemas['MarketEventWithMarkets'], D>;
export type Prices<D extends DecimalType = number> = WithDecimals<Schemas['Prices'], D>;
export type Orderbook<D extends DecimalType = number> = WithDecimals<Schemas['Orderbook'], D>;
export type MarketFees<D extends DecimalType = number> = WithDecimals<Schemas['MarketFees'], D>;
export type Executable<D extends DecimalType = number> = WithDecimals<Schemas['Executable'], D>;
export type PlacedExecutable<D extends DecimalType = number> = WithDecimals<Schemas['PlacedExecutable'], D>;
export type Comparison<D extends DecimalType = number> = WithDecimals<Schemas['Comparison'], D>;
export type Candle<D extends DecimalType = number> = WithDecimals<Schemas['Candle'], D>;
export type VolumeWindow<D extends DecimalType = number> = WithDecimals<Schemas['VolumeWindow'], D>;
export type Snapshot<D extends DecimalType = number> = WithDecimals<Schemas['Snapshot'], D>;
export type Trade<D extends DecimalType = number> = WithDecimals<Schemas['Trade'], D>;
export type Resolution<D extends DecimalType = number> = WithDecimals<Schemas['Resolution'], D>;
export type ResolutionRow<D extends DecimalType = number> = WithDecimals<Schemas['ResolutionRow'], D>;
export type TradeHistory = Schemas['TradeHistory'];

/** A message of a market stream; `type` discriminates the union. Ignore types that you do not know. */
export type StreamMessage<D extends DecimalType = number> = WithDecimals<Schemas['StreamMessage'], D>;
/** A message of the stream of account events. */
export type EventStreamMessage = Schemas['EventStreamMessage'];

export type Webhook = Schemas['Webhook'];
export type WebhookItem = Schemas['WebhookItem'];
export type WebhookWithSecret = Schemas['WebhookWithSecret'];
export type RotatedWebhook = Schemas['RotatedWebhook'];
export type Delivery = Schemas['Delivery'];
export type DeliveryWithLog = Schemas['DeliveryWithLog'];
export type Attempt = Schemas['Attempt'];
export type Alert = Schemas['Alert'];
export type AlertBacktest = Schemas['AlertBacktest'];
export type AlertBacktestResult = Schemas['AlertBacktestResult'];
export type Wallet = Schemas['Wallet'];
export type WatchedMarket<D extends DecimalType = number> = WithDecimals<Schemas['WatchedMarket'], D>;
export type ApiKey = Schemas['ApiKey'];
export type ApiKeyWithSecret = Schemas['ApiKeyWithSecret'];

export type AlertExpiredEvent = Schemas['AlertExpiredEvent'];
export type PriceAlertEvent<D extends DecimalType = number> = WithNumbers<Schemas['PriceAlertEvent'], D>;
export type TransactionEvent<D extends DecimalType = number> = WithNumbers<Schemas['TransactionEvent'], D>;
export type BalanceChangeEvent<D extends DecimalType = number> = WithNumbers<Schemas['BalanceChangeEvent'], D>;
export type WebhookFailingEvent = Schemas['WebhookFailingEvent'];
export type WebhookPausedEvent = Schemas['WebhookPausedEvent'];
export type MarketStatusEvent = Schemas['MarketStatusEvent'];
export type NewMarketEvent = Schemas['NewMarketEvent'];
export type TradeEvent<D extends DecimalType = number> = WithNumbers<Schemas['TradeEvent'], D>;
export type FeedGapEvent = Schemas['FeedGapEvent'];
export type MarketResolutionEvent<D extends DecimalType = number> = WithNumbers<Schemas['MarketResolutionEvent'], D>;
export type MarketRulesEvent = Schemas['MarketRulesEvent'];
export type TestEvent = Schemas['TestEvent'];
/** The event of a webhook request; `type` discriminates the union. */
export type WebhookEvent<D extends DecimalType = number> =
  | PriceAlertEvent<D>
  | AlertExpiredEvent
  | TransactionEvent<D>
  | BalanceChangeEvent<D>
  | WebhookFailingEvent
  | WebhookPausedEvent
  | MarketStatusEvent
  | NewMarketEvent
  | TradeEvent<D>
  | FeedGapEvent
  | MarketResolutionEvent<D>
  | MarketRulesEvent
  | TestEvent;
