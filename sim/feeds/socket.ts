import type { WebSocket } from 'ws';
import type { RandomStream } from '../random.ts';
import type { Trade } from '../world/trade-tape.ts';
import type { LifeChange, MarketChange } from './followed-markets.ts';
import type { SocketFault } from './socket-faults.ts';

const DEFAULT_SHARE = 0.1;
const DEFAULT_TIMES = 20;
const MILLION = 1_000_000;

/** One connection of a client, behind the faults of its host. */
export class FeedSocket {
  readonly id: number;
  private readonly socket: WebSocket;
  private readonly random: RandomStream;
  private readonly faults: () => readonly SocketFault[];
  private isFrozen = false;
  private isHalfOpen = false;
  /** A message that `reorder` holds back. */
  private held: string | undefined;

  /** @param faults the active faults of the host; each call counts */
  constructor(id: number, socket: WebSocket, random: RandomStream, faults: () => readonly SocketFault[]) {
    this.id = id;
    this.socket = socket;
    this.random = random;
    this.faults = faults;
  }

  /** Sends an answer, which no fault but `half_open` affects. */
  reply(text: string): void {
    if (!this.isHalfOpen) this.socket.send(text);
  }

  /** Sends data. */
  push(text: string): void {
    let copies = [text];
    for (const fault of this.faults()) copies = this.apply(fault, copies);
    if (this.isFrozen || this.isHalfOpen) return;
    for (const copy of copies) this.socket.send(copy);
  }

  close(code: number, reason: string): void {
    this.socket.close(code, reason);
  }

  /** Ends the connection without a closing handshake. */
  terminate(): void {
    this.socket.terminate();
  }

  private apply({ how, share = DEFAULT_SHARE, times = DEFAULT_TIMES }: SocketFault, texts: string[]): string[] {
    switch (how) {
      case 'freeze':
        this.isFrozen = true;
        return [];
      case 'half_open':
        this.isHalfOpen = true;
        this.socket.pause();
        return [];
      case 'drop':
        return texts.filter(() => !this.isHit(share));
      case 'repeat':
        return texts.flatMap((text) => (this.isHit(share) ? [text, text] : [text]));
      case 'reorder':
        return texts.flatMap((text) => this.reordered(text, share));
      case 'garbage':
        return texts.flatMap((text) => (this.isHit(share) ? [text, this.garbage(text)] : [text]));
      case 'arrays':
        return texts.map((text) => `[${text}]`);
      case 'flood':
        return texts.flatMap((text) => Array<string>(times).fill(text));
      default:
        return texts;
    }
  }

  private reordered(text: string, share: number): string[] {
    const { held } = this;
    if (held !== undefined) {
      this.held = undefined;
      return [text, held];
    }
    if (!this.isHit(share)) return [text];
    this.held = text;
    return [];
  }

  /** Texts that are no messages of any venue. */
  private garbage(text: string): string {
    return this.random.pick([
      text.slice(0, text.length / 2),
      '',
      'null',
      '{}',
      '[[]]',
      '\u0000',
      '{"type":7}',
      'PONGG',
    ]);
  }

  private isHit(share: number): boolean {
    return this.random.chance(Math.round(share * MILLION));
  }
}

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
