import type { Trade } from '../world/trade-tape.ts';
import type { LifeChange, MarketChange } from './followed-markets.ts';
import type { FeedSocket } from './socket.ts';

/** The protocol of one host: its answers to clients, and its messages about changes. */
export interface SimVenueFeed {
  /** A client connected. */
  opened(socket: FeedSocket): void;
  closed(socket: FeedSocket): void;
  /** A text frame of a client. `maxIds`: a subscription to more ids at once closes the connection. */
  received(socket: FeedSocket, text: string, maxIds: number): void;
  publish(changes: readonly MarketChange[], life: readonly LifeChange[], trades: readonly Trade[]): void;
}

/** The JSON object in a text; undefined for anything else. */
export function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text) as unknown;
    return value !== null && typeof value === 'object' && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}
