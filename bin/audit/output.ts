import { printable } from '../../src/domain/values/text.ts';
import { print } from '../output/print.ts';
import type { AuditOptions } from './arguments.ts';

export const NOTHING_COMPARED = 'nothing was compared';

/** An audit that compared nothing proves nothing, so it does not end like one that found no difference. */
export function auditExitCode({ compared, differences }: { compared: number; differences: number }): number {
  if (differences > 0) return 1;
  return compared === 0 ? 3 : 0;
}

/** Prints differences as they are found: a line each, or one JSON object in which they are a list. */
export function createAuditOutput({ json, limit }: Pick<AuditOptions, 'json' | 'limit'>) {
  let found = 0;
  let isOpen = false;

  /** The text before the next element of the list. */
  function separator(): string {
    const text = isOpen ? ',\n' : '{"differences":[\n';
    isOpen = true;
    return text;
  }

  return {
    get found() {
      return found;
    },
    /** Counts a difference, and prints the first ones up to the limit. */
    async difference(text: () => string, value: () => object): Promise<void> {
      found += 1;
      if (found > limit) return;
      await print(json ? `${separator()}${JSON.stringify(value())}` : `${printable(text())}\n`);
    },
    /** Ends the output. The totals are fields of the JSON object, which is complete also without a difference. */
    async end(totals: Readonly<Record<string, number | boolean>>): Promise<void> {
      if (found > limit) process.stderr.write(`${found - limit} more differences are not shown (--limit)\n`);
      if (!json) return;
      const list = isOpen ? '\n' : '{"differences":[';
      await print(`${list}],${JSON.stringify({ found, ...totals }).slice(1)}\n`);
    },
  };
}
