import { LongNumber, parseDecimal } from './decimal.ts';

/** A name that an object has a second time. */
interface RepeatedName {
  /** The names and positions that lead to it, joined by dots. */
  path: string;
  /** The position of its second occurrence in the text, from 1. */
  at: number;
}

interface ExactJson {
  /** As from `JSON.parse`, with a `LongNumber` for each number that would lose digits. */
  value: unknown;
  repeated?: RepeatedName;
}

interface Frame {
  node: unknown;
  /** The current name or position. */
  key: string | number;
  /** The names so far; absent for arrays. */
  names?: Set<string>;
  expectsName: boolean;
}

/** The tokens of valid JSON. */
const TOKEN = /\s*(?:("[^"\\]*(?:\\.[^"\\]*)*")|(-?\d[\d.eE+-]*)|([{}[\],])|:|true|false|null)/y;

/**
 * Parses JSON without a loss of digits, and finds the first repeated name, of which `JSON.parse` keeps the last value silently.
 * @throws SyntaxError for a text that is not JSON
 */
export function parseExactJson(text: string): ExactJson {
  const root = { value: JSON.parse(text) as unknown };
  // An explicit stack, because brackets may nest deeper than the call stack.
  const frames: Frame[] = [{ node: root, key: 'value', expectsName: false }];
  TOKEN.lastIndex = 0;
  for (let found = TOKEN.exec(text); found !== null; found = TOKEN.exec(text)) {
    const [whole, string, number, sign] = found;
    const frame = frames.at(-1) as Frame;
    if (string !== undefined && frame.expectsName && frame.names) {
      const name = JSON.parse(string) as string;
      frame.key = name;
      frame.expectsName = false;
      if (frame.names.has(name)) {
        const at = found.index + whole.length - string.length + 1;
        return { value: root.value, repeated: { path: pathOf(frames), at } };
      }
      frame.names.add(name);
    } else if (number !== undefined) {
      if (!isExact(number)) replaceIn(frame, new LongNumber(number));
    } else if (sign === '{' || sign === '[') {
      const node = childOf(frame);
      frames.push(
        sign === '{' ? { node, key: '', names: new Set(), expectsName: true } : { node, key: 0, expectsName: false },
      );
    } else if (sign === '}' || sign === ']') {
      frames.pop();
    } else if (sign === ',') {
      frame.expectsName = frame.names !== undefined;
      if (typeof frame.key === 'number') frame.key += 1;
    }
  }
  return root;
}

function isExact(number: string): boolean {
  const digits = parseDecimal(number);
  return digits !== null && digits === parseDecimal(Number(number));
}

/** The value may differ from the text until a repeated name is found, so a node may be of any type. */
function childOf({ node, key }: Frame): unknown {
  return typeof node === 'object' && node !== null ? (node as Record<string | number, unknown>)[key] : undefined;
}

function replaceIn({ node, key }: Frame, value: LongNumber): void {
  if (typeof node === 'object' && node !== null && Object.hasOwn(node, key)) {
    (node as Record<string | number, unknown>)[key] = value;
  }
}

function pathOf(frames: readonly Frame[]): string {
  return frames
    .slice(1)
    .map(({ key }) => key)
    .join('.');
}
