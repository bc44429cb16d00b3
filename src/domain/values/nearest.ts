/** A typing error changes at most this many letters. */
const MAX_CHANGES = 2;

/** The word that a misspelt one probably means: the closest of those within two changes, or one that it begins. */
export function nearest(text: string, words: readonly string[]): string | undefined {
  const ranked = words
    .map((word) => ({ word, changes: text !== '' && word.startsWith(text) ? 0 : changesBetween(text, word) }))
    .sort((a, b) => a.changes - b.changes);
  const [best] = ranked;
  return best !== undefined && best.changes <= MAX_CHANGES ? best.word : undefined;
}

/** The least number of inserted, removed or replaced letters (Levenshtein). */
function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...from].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...to].entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
