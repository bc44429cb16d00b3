#!/usr/bin/env node
// Counts awkward constructions per 1,000 words in comments, test names and Markdown prose (CONTRIBUTING: plain English).
// Fails when the project exceeds LIMIT, or a file of at least MIN_WORDS words exceeds FILE_LIMIT. `--all` lists every place.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname ?? '.', '..');
const LIMIT = 3;
const FILE_LIMIT = 15;
const MIN_WORDS = 60;
const WORST = 10;

const AWKWARD = new RegExp(
  [
    String.raw`\b(?:what|who|whoever|whatever|whom)\b(?! happens\b| is next\b)`,
    String.raw`\bthose (?:that|who|which)\b`,
    String.raw`\b(?:is|are|was) (?:no|none)\b`,
    String.raw`\b(?:nobody|somebody|dear|dearest|dearer|wedged|mend|mended|ailing|robbed|blames)\b`,
    String.raw`\b(?:under way|tells of|told twice|for ever)\b`,
  ].join('|'),
  'gi',
);

/** Strings come first, so that `//` inside one starts no comment. */
const STRING_OR_COMMENT = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
const TEST_NAME =
  /\b(?:it|test|describe)(?:\.\w+)*(?:\([^'"`]*?\))?\(\s*(?:'((?:\\.|[^'\\\n])*)'|"((?:\\.|[^"\\\n])*)"|`((?:\\.|[^`\\])*)`)/g;

const files = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' })
  .split('\0')
  .filter((file) => /\.(ts|mjs|js|md)$/.test(file) && file !== 'clients/typescript/src/schema.ts')
  .filter((file) => file !== 'docs/spec.md' && file !== 'scripts/check-prose.mjs');

const results = files.map((file) => {
  const text = readFileSync(join(ROOT, file), 'utf8');
  const prose = (file.endsWith('.md') ? markdownProse(text) : codeProse(text)).replaceAll(/`[^`\n]*`/g, ' ');
  const words = prose.match(/[A-Za-z][A-Za-z'’-]*/g)?.length ?? 0;
  return { file, words, found: [...prose.matchAll(AWKWARD)].map((match) => around(prose, match)) };
});

function markdownProse(text) {
  return text.replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, ' ').replaceAll(/\]\([^)]*\)/g, ']');
}

function codeProse(text) {
  const comments = [...text.matchAll(STRING_OR_COMMENT)].map(([part]) => part).filter((part) => part.startsWith('/'));
  const names = [...text.matchAll(TEST_NAME)].map((match) => match[1] ?? match[2] ?? match[3]);
  return [...comments.map((comment) => comment.replaceAll(/^\s*\*|^\/[/*]+|\*\/$/gm, ' ')), ...names].join('\n');
}

function around(prose, { index, 0: match }) {
  return prose
    .slice(Math.max(0, index - 40), index + match.length + 30)
    .replaceAll(/\s+/g, ' ')
    .trim();
}

const rate = ({ words, found }) => (words === 0 ? 0 : (1000 * (found.length ?? found)) / words);
const total = results.reduce(
  (sum, { words, found }) => ({ words: sum.words + words, found: sum.found + found.length }),
  { words: 0, found: 0 },
);
const long = results.filter(({ words }) => words >= MIN_WORDS).sort((a, b) => rate(b) - rate(a));
const bad = long.filter((result) => rate(result) > FILE_LIMIT);
const isBad = rate(total) > LIMIT || bad.length > 0;

console.log(
  `prose: ${rate(total).toFixed(1)} awkward constructions per 1,000 words (limit ${LIMIT}), ${total.words} words`,
);
if (isBad || process.argv.includes('--all')) {
  for (const result of [...bad, ...long.slice(bad.length, WORST)]) {
    console.log(
      `  ${rate(result).toFixed(1).padStart(5)}  ${result.file} (${result.found.length} in ${result.words} words)`,
    );
  }
}
if (process.argv.includes('--all')) {
  for (const { file, found } of results) for (const place of found) console.log(`${file}: ${place}`);
}
process.exit(isBad ? 1 : 0);
