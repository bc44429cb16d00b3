/** A recorded row of version 1 of Polymarket's Data API under the names of version 2. */
export function inVersion2(row: unknown): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row as object).map(([name, value]) => [
      name === 'asset' ? 'token_id' : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );
}
