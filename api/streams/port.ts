import type { Socket } from 'node:net';
import type { Scope } from '../../src/domain/values/api-key.ts';
import type { AccountUse, OpenOfAccount } from './account-use.ts';
import type { Sink, StreamClient } from './client.ts';
import type { EventPosition } from './event-hub.ts';
import type { Filter } from './filter.ts';
import type { JournalPosition, StreamCursors } from './frame.ts';

/** The address of the WebSocket. */
export const SOCKET_PATH = '/v1/stream';

export interface OpenOptions {
  sink: Sink;
  caller: { accountId: bigint; keyId: string };
  scope: Scope;
  protocol: 'sse' | 'websocket';
  /** Its connection is not counted as one of requests, except that of a visitor. */
  socket: Socket;
  /** The longest time between heartbeats. Absent: that of the configuration. */
  maxHeartbeatMs?: number | undefined;
}

/** The start of a subscription. */
export interface Start {
  /** Absent: the present. */
  position?: JournalPosition;
  /** Whether the state of its markets is sent first, also after a gap. */
  hasSnapshot: boolean;
}

export interface StreamDeps {
  /** The open streams of this process. */
  streams: OpenStreams;
}

/** The open streams of this process, for the routes and the WebSocket. */
export interface OpenStreams {
  readonly cursors: StreamCursors;
  /** The time for a reader to read its last messages, milliseconds. Then its connection is cut. */
  readonly lastReadMs: number;
  readonly events: {
    /** The position of a cursor of this account. @throws InvalidCursorError */
    decode(accountId: bigint, cursor: string): EventPosition;
  };
  /** Excludes a connection from the bounds of connections for requests; the server sets it. */
  exempt(socket: Socket): void;
  /** @throws ApiError `not_ready` before the first read of the journal, and while the process stops. */
  requireReady(): void;
  /** Counts a connection of the account. @throws ApiError `rate_limited` or `not_ready` */
  admit(accountId: bigint): AccountUse;
  /** @throws ApiError `rate_limited` when the account or this process watches as many orders as it may. */
  requireRoom(accountId: bigint, filter: Filter): void;
  /** The open connections and subscriptions of an account in this process. */
  usageOf(accountId: bigint): OpenOfAccount;
  /** The client of an admitted connection. */
  open(use: AccountUse, options: OpenOptions): StreamClient;
  /** Includes the client in the next write: the connection accepts bytes again. */
  resume(client: StreamClient): void;
  /** Begins a subscription at a position or at the present. Returns the number after which its first change comes. */
  subscribe(client: StreamClient, id: string, filter: Filter, start: Start): number;
  /** False when the client has no subscription of this id. */
  unsubscribe(client: StreamClient, id: string): boolean;
  /** Sends the account's events after a position, by default all later ones. */
  followEvents(client: StreamClient, accountId: bigint, position: EventPosition | undefined): void;
}
