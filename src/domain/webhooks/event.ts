/**
 * Broadcasts: events about the public data of venues. They belong to no account, so each account gets the ones that its webhooks list and
 * do not exclude.
 */
export const BROADCAST_EVENTS = [
  'market_status',
  'new_market',
  'trade',
  'feed_gap',
  'market_resolution',
  'market_rules',
] as const;
export type BroadcastEvent = (typeof BROADCAST_EVENTS)[number];

/**
 * The event types of a subscription: those of the specification (section 6.1), events about the account's alerts and webhooks, and
 * broadcasts. `test` events are sent only on request and cannot be subscribed to.
 */
export const SUBSCRIBABLE_EVENTS = [
  'price_alert',
  'transaction',
  'balance_change',
  'alert_expired',
  'webhook_failing',
  'webhook_paused',
  ...BROADCAST_EVENTS,
] as const;
export type SubscribableEvent = (typeof SUBSCRIBABLE_EVENTS)[number];
export const EVENT_TYPES = [...SUBSCRIBABLE_EVENTS, 'test'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** The life of a delivery. Only `pending` changes without an action of a user. */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** The reason of a failed attempt. Stable: stored with the attempt, shown to clients and used as a metric label. */
export type AttemptErrorCode =
  | 'dns_error'
  | 'connect_timeout'
  | 'connection_refused'
  | 'connection_reset'
  | 'timeout'
  | 'tls_error'
  | 'header_overflow'
  | 'blocked_address'
  | 'invalid_url'
  | 'redirect'
  | 'http_status'
  | 'protocol_error';
