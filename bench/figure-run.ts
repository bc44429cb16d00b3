import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type { Figure, FigureLine } from './support/figure.ts';
import { tableOf } from './support/figure-table.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder for the figures of a run's bench files. */
    figuresDir: string;
  }
}

/** Prints one table of all figures at the end of a run, by bench file, with the notes below it; also of a failed run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'oddswire-figures-'));
  project.provide('figuresDir', directory);
  return async () => {
    const figures: { bench: string; figure: Figure }[] = [];
    const notes: string[] = [];
    for (const file of (await readdir(directory)).sort()) {
      const bench = file.replace(/(\.bench)?\.jsonl$/, '');
      for (const line of (await readFile(join(directory, file), 'utf8')).trimEnd().split('\n')) {
        const kept = JSON.parse(line) as FigureLine;
        if ('figure' in kept) figures.push({ bench, figure: kept.figure });
        else notes.push(`${bench}: ${kept.note}`);
      }
    }
    await rm(directory, { recursive: true });
    if (figures.length > 0) console.log(`\n${tableOf(figures)}\n`);
    if (notes.length > 0) console.log(`${notes.join('\n')}\n`);
  };
}
