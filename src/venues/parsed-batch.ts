import type { Batch } from './port.ts';

/** A field whose value the parser does not know. */
export interface UnknownValue {
  field: string;
  value: string;
}

/**
 * The result of a pure parser. Every row of the payload becomes a record, a rejection or a skip, so the three add up to the length of the
 * payload wherever one row makes at most one record.
 */
export interface ParsedBatch<R> extends Batch<R> {
  unknowns: UnknownValue[];
  /**
   * One reason per sound record that oddswire does not store, such as a poll among markets or an unfilled order among trades.
   * `docs/venues.md` lists the reasons of each venue.
   */
  skipped: string[];
}

export function emptyBatch<R>(): ParsedBatch<R> {
  return { records: [], rejected: [], unknowns: [], skipped: [] };
}

/** Adds the batch of one answer to the batch of all answers. */
export function addPart<R>(batch: ParsedBatch<R>, part: ParsedBatch<R>): void {
  batch.records.push(...part.records);
  batch.rejected.push(...part.rejected);
  batch.unknowns.push(...part.unknowns);
  batch.skipped.push(...part.skipped);
}

/** The batch with the time of another answer: each record has the time of its answer. */
export function withTime<R extends { asOfMs: number }>(batch: ParsedBatch<R>, asOfMs: number): ParsedBatch<R> {
  const { records, rejected, unknowns, skipped } = batch;
  return {
    records: records.map((record) => ({ ...record, asOfMs })),
    rejected: [...rejected],
    unknowns: [...unknowns],
    skipped: [...skipped],
  };
}
