#!/usr/bin/env node
// Counts awkward constructions per 1,000 words in comments, test names and Markdown prose (CONTRIBUTING: plain English).
// Fails when all files together exceed `limit`, or one file of at least `minWords` words exceeds `fileLimit`. Lists the places of
// the files that fail; `--all` lists every place.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { inspectProse, judgeProse, rateOf } from './prose.mjs';

const ROOT = resolve(import.meta.dirname ?? '.', '..');
const LIMITS = { limit: 3, fileLimit: 15, minWords: 60 };
const WORST = 10;
/** Generated, fixed by its owner, or a list of the awkward words themselves. */
const SKIPPED = [
  'clients/typescript/src/schema.ts',
  'docs/spec.md',
  'scripts/prose.mjs',
  'test/unit/scripts/prose.test.ts',
];

const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
  .split('\0')
  .filter((file) => /\.(ts|mjs|js|md)$/.test(file) && !SKIPPED.includes(file));
const results = files.map((file) => inspectProse(file, readFileSync(join(ROOT, file), 'utf8')));
const { words, rate, ranked, bad, isBad } = judgeProse(results, LIMITS);
const listsAll = process.argv.includes('--all');

console.log(`prose: ${rate.toFixed(1)} awkward constructions per 1,000 words (limit ${LIMITS.limit}), ${words} words`);
if (bad.length > 0) console.error(`prose: ${bad.length} file(s) exceed ${LIMITS.fileLimit} per 1,000 words`);
if (isBad || listsAll) {
  for (const result of ranked.slice(0, Math.max(bad.length, WORST))) {
    const { file, found } = result;
    console.log(`  ${rateOf(result).toFixed(1).padStart(5)}  ${file} (${found.length} in ${result.words} words)`);
  }
}
for (const { file, found } of listsAll ? results : bad) for (const place of found) console.log(`${file}: ${place}`);
process.exit(isBad ? 1 : 0);
