/** The first names of a list; undefined when it is empty. */
export function listed(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  return `${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''}`;
}
