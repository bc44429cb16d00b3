import type { Batch } from './port.ts';

/** A field whose value is not known, seen while parsing. */
export interface UnknownValue {
  field: string;
  value: string;
}

/** What a pure parser makes of a payload: records, refusals, and the unknown values for whoever counts them. */
export interface ParsedBatch<R> extends Batch<R> {
  unknowns: UnknownValue[];
}
