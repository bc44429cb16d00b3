import type { FaultKind } from '../faults.ts';
import { BoundedLog } from '../world/bounded-log.ts';

/** One request to a venue host, for tests that count, order or time requests. */
export interface RequestRecord {
  readonly startedAtMs: number;
  /** Absent while the answer is in flight. */
  endedAtMs?: number;
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  status?: number;
  /** The length of the answer's body, before faults. */
  bytes?: number;
  readonly faults: readonly FaultKind[];
}

const KEPT_REQUESTS = 2000;

/** The latest requests; the oldest are dropped first. */
export class RequestLog {
  private readonly log = new BoundedLog<RequestRecord>(KEPT_REQUESTS);

  add(record: RequestRecord): void {
    this.log.push(record);
  }

  /** Oldest first. */
  list(): RequestRecord[] {
    return [...this.log.newestFirst()].reverse();
  }
}
