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

/** The words of a file's prose and its awkward places with their context. Prose is comments and test names, or Markdown without code. */
export function inspectProse(file, text) {
  const prose = (file.endsWith('.md') ? markdownProse(text) : codeProse(text)).replaceAll(/`[^`\n]*`/g, ' ');
  const words = prose.match(/[A-Za-z][A-Za-z'’-]*/g)?.length ?? 0;
  return { file, words, found: [...prose.matchAll(AWKWARD)].map((match) => around(prose, match)) };
}

/** Compares inspected files with the limits: the rate of all files, and of each file with at least `minWords` words. */
export function judgeProse(results, { limit, fileLimit, minWords }) {
  const words = results.reduce((sum, result) => sum + result.words, 0);
  const found = results.reduce((sum, result) => sum + result.found.length, 0);
  const ranked = results.filter((result) => result.words >= minWords).sort((a, b) => rateOf(b) - rateOf(a));
  const bad = ranked.filter((result) => rateOf(result) > fileLimit);
  const rate = words === 0 ? 0 : (1000 * found) / words;
  return { words, rate, ranked, bad, isBad: rate > limit || bad.length > 0 };
}

/** Awkward constructions per 1,000 words. */
export function rateOf({ words, found }) {
  return words === 0 ? 0 : (1000 * found.length) / words;
}

function markdownProse(text) {
  return text.replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, ' ').replaceAll(/\]\([^)]*\)/g, ']');
}

function codeProse(text) {
  const comments = [...text.matchAll(STRING_OR_COMMENT)].map(([part]) => part).filter((part) => part.startsWith('/'));
  const names = [...text.matchAll(TEST_NAME)].map((match) => match[1] ?? match[2] ?? match[3]);
  return [...comments.map((comment) => comment.replaceAll(/^\s*\*\/?|^\/[/*]+|\*\/$/gm, ' ')), ...names].join('\n');
}

function around(prose, { index, 0: match }) {
  return prose
    .slice(Math.max(0, index - 40), index + match.length + 30)
    .replaceAll(/\s+/g, ' ')
    .trim();
}
