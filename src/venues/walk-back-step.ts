import type { HistoryRequest } from './port.ts';

/** One call of a walk back over the trades of a market. */
export interface WalkBackStep<Row, Position> {
  /** Rows of complete instants inside the request's range; rejected ones without a time may be among them. */
  rows: Row[];
  position: Position | null;
  /** Epoch milliseconds: everything from here to the end of the range was read. It falls from page to page. */
  reachedMs: number;
  more: boolean;
  /** The part that the venue does not serve. The walk continues below it where possible. */
  truncated?: string;
}

/** The reach of a walk that has read everything from this moment on: inside the range of its request. */
export function reachedAt({ fromMs, toMs }: HistoryRequest, ms: number): number {
  return Math.min(toMs, Math.max(fromMs, ms));
}
