import { appendFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, inject } from 'vitest';
import type { Figure, FigureLine } from './figure.ts';
import { inOneLine } from './figure-table.ts';

/** Prints figures at once, a line each, and keeps them for the table at the end of the run. */
export function report(figures: readonly Figure[]): void {
  for (const figure of figures) {
    console.log(inOneLine(figure));
    keep({ figure });
  }
}

/** Prints facts beside the figures (sizes, memory, time to create the data), and repeats them below the table. */
export function note(text: string): void {
  console.log(text);
  keep({ note: text });
}

function keep(kept: FigureLine): void {
  const file = basename(expect.getState().testPath ?? 'unknown').replace(/\.ts$/, '');
  appendFileSync(join(inject('figuresDir'), `${file}.jsonl`), `${JSON.stringify(kept)}\n`);
}
