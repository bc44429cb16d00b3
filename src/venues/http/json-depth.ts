const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENER = 0x7b; // "{", and "[" with this bit set
const CLOSER = 0x7d; // "}", and "]" with this bit set
const BRACE_BIT = 0x20;

/**
 * Whether a JSON text nests lists and objects deeper than `maxDepth`. `JSON.parse` reads any depth, but code that walks the result
 * recursively, such as `JSON.stringify`, would overflow the stack.
 */
export function isDeeperThan(json: string, maxDepth: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfText(json, at);
      continue;
    }
    // A comparison costs less than a third of a look-up in a set, and answers have up to millions of characters.
    const brace = code | BRACE_BIT;
    if (brace === OPENER) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (brace === CLOSER) depth -= 1;
  }
  return false;
}

/** The index of the quote that ends the string that begins at `start`; the length of the text when the string does not end. */
function endOfText(json: string, start: number): number {
  for (let end = json.indexOf('"', start + 1); end !== -1; end = json.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (json.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return json.length;
}
