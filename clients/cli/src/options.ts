import type { Option, Options } from '../../../cli/arguments.ts';

/** The events of a new webhook. The others are many, or need a filter. */
export const DEFAULT_EVENTS = ['price_alert', 'transaction', 'balance_change'] as const;
export const KEY_STATUSES = ['active', 'expired', 'revoked'] as const;

export const VENUE: Option = { value: 'VENUE', help: 'only this venue, such as kalshi; by default all' };
export const OUTCOME: Option = { value: 'ID', help: 'one outcome of the market' };
export const CURSOR: Option = {
  value: 'CURSOR',
  help: 'continues behind the last row of an earlier call (meta.next_cursor of --json)',
};
export const RANGE: Options = {
  start: { value: 'TIME', help: 'from this time: an age such as 24h, a date, ISO 8601 in UTC, or epoch seconds' },
  end: { value: 'TIME', help: 'until before this time' },
};
