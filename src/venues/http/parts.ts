/** The list in parts of at most `size`. */
export function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}

/** The two halves of a list; fewer where one is empty. */
export function halvesOf<T>(items: readonly T[]): T[][] {
  return chunks(items, Math.ceil(items.length / 2));
}
