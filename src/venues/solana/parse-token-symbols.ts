import { isStorableText } from '../../domain/values/text.ts';

const MAX_LENGTH = 32;
/** Anyone can create a token: symbols with control characters or marks of writing direction are ignored. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/** The symbols of these mints in an answer of Tokens v2; pure. Rows of other mints and unreadable symbols are ignored. */
export function parseTokenSymbols(rows: readonly unknown[], mints: readonly string[]): Map<string, string> {
  const wanted = new Set(mints);
  const symbols = new Map<string, string>();
  for (const row of rows) {
    if (row === null || typeof row !== 'object') continue;
    const { id, symbol } = row as { id?: unknown; symbol?: unknown };
    if (typeof id !== 'string' || !wanted.has(id) || symbols.has(id)) continue;
    const text = typeof symbol === 'string' ? symbol.trim() : '';
    if (text !== '' && text.length <= MAX_LENGTH && isStorableText(text) && !UNPRINTABLE.test(text))
      symbols.set(id, text);
  }
  return symbols;
}
