/** One member of a JSON container: the position of its text, neither parsed nor rewritten. */
interface JsonSlice {
  readonly key: string | undefined;
  readonly text: string;
}

/**
 * The members of the object or array in `text`, each with its original text: numbers keep their digits and
 * objects their key order. The text must be valid JSON; other values have no members.
 */
export function childSlices(text: string): JsonSlice[] {
  const open = skipSpace(text, 0);
  const isObject = text[open] === '{';
  if (!isObject && text[open] !== '[') return [];
  const found: JsonSlice[] = [];
  let at = skipSpace(text, open + 1);
  while (at < text.length && text[at] !== '}' && text[at] !== ']') {
    let key: string | undefined;
    if (isObject) {
      const keyEnd = endOfString(text, at);
      key = JSON.parse(text.slice(at, keyEnd)) as string;
      at = skipSpace(text, skipSpace(text, keyEnd) + 1);
    }
    const end = endOfValue(text, at);
    found.push({ key, text: text.slice(at, end) });
    at = skipSpace(text, end);
    if (text[at] === ',') at = skipSpace(text, at + 1);
  }
  return found;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text[at] ?? '')) at += 1;
  return at;
}

function endOfString(text: string, from: number): number {
  let at = from + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function endOfValue(text: string, from: number): number {
  const first = text[from];
  if (first === '"') return endOfString(text, from);
  if (first !== '{' && first !== '[') {
    let at = from;
    while (at < text.length && !/[\s,\]}]/.test(text[at] ?? '')) at += 1;
    return at;
  }
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const char = text[at];
    if (char === '"') {
      at = endOfString(text, at);
      continue;
    }
    if (char === '{' || char === '[') depth += 1;
    if (char === '}' || char === ']') depth -= 1;
    at += 1;
    if (depth === 0) return at;
  }
  return at;
}
