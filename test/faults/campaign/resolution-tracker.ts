import type { Fleet } from '../../support/processes/fleet.ts';
import { API_KEY } from '../../support/processes/system.ts';

export interface TrackedRow {
  readonly venue: string;
  readonly market_id: string;
  readonly transition: string;
  readonly state: string;
  readonly round?: number;
  readonly payouts: readonly { outcome_id: string; payout: number }[] | null;
  readonly source: string;
}

interface Page {
  data: TrackedRow[];
  meta: { next_cursor: string | null; resume_cursor: string };
}

/** A client that pages through all changes of results from the beginning, and keeps its place only in the cursor. */
export class ResolutionTracker {
  readonly rows: TrackedRow[] = [];
  readonly #byMarket = new Map<string, TrackedRow[]>();
  readonly #fleet: Fleet;
  #cursor: string | undefined;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  rowsOf(venue: string, marketId: string): readonly TrackedRow[] {
    return this.#byMarket.get(`${venue} ${marketId}`) ?? [];
  }

  /** Reads to the end of the list. */
  async read(): Promise<void> {
    for (;;) {
      const cursor = this.#cursor === undefined ? '' : `&cursor=${encodeURIComponent(this.#cursor)}`;
      const response = await fetch(`${this.#fleet.apis()[0]}/v1/all/resolutions?limit=100${cursor}`, {
        headers: { authorization: `Bearer ${API_KEY}` },
      });
      if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
      const { data, meta } = (await response.json()) as Page;
      for (const row of data) {
        this.rows.push(row);
        const key = `${row.venue} ${row.market_id}`;
        this.#byMarket.set(key, [...(this.#byMarket.get(key) ?? []), row]);
      }
      this.#cursor = meta.resume_cursor;
      if (meta.next_cursor === null) return;
    }
  }
}
