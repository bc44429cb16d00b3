const INDENT = '  ';

/** Characters that change the writing direction. Unescaped, the displayed text would differ from the stored text. */
const DIRECTION_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/**
 * JSON text with one line per field and unchanged digits. It does not parse values: it changes only white space between tokens and
 * escapes characters that change the writing direction. Text that is not JSON keeps its characters in order.
 */
export function prettyJson(text: string): string {
  let out = '';
  let depth = 0;
  const newLine = () => `\n${INDENT.repeat(depth)}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s"{}[\],:]+/gs)) {
    if (token === '{' || token === '[') {
      depth += 1;
      out += token + newLine();
    } else if (token === '}' || token === ']') {
      depth = Math.max(0, depth - 1);
      // An empty object or list stays on its line.
      out = /[{[]\s*$/.test(out) ? out.trimEnd() + token : out + newLine() + token;
    } else if (token === ',') out += token + newLine();
    else if (token === ':') out += ': ';
    else out += token;
  }
  return out.replace(DIRECTION_CONTROLS, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const BYTES_PER_LINE = 16;

/** Bytes as a hex dump: offset, bytes, and the printable characters. */
export function hexDump(bytes: Uint8Array): string {
  const lines: string[] = [];
  for (let offset = 0; offset < bytes.length; offset += BYTES_PER_LINE) {
    const line = bytes.subarray(offset, offset + BYTES_PER_LINE);
    const hex = [...line].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const text = [...line].map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`${offset.toString(16).padStart(4, '0')}  ${hex.padEnd(BYTES_PER_LINE * 3 - 1)}  ${text}`);
  }
  return lines.join('\n');
}
