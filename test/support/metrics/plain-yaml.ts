/** The contents of block YAML: scalars stay text, `<<: *name` is merged. */
export type Yaml = string | Yaml[] | { [key: string]: Yaml };

interface Line {
  indent: number;
  text: string;
  number: number;
}

/**
 * Parses the YAML of the compose files: block mappings and lists, one-line scalars and `[a, b]` lists,
 * anchors of mappings. @throws Error naming the line for anything else, so that no line is skipped
 */
export function parsePlainYaml(text: string): Yaml {
  const lines: Line[] = [];
  for (const [index, raw] of text.split('\n').entries()) {
    const body = raw.trimEnd();
    if (body.trim() === '' || body.trimStart().startsWith('#')) continue;
    if (/\t/.test(body)) throw new Error(`line ${index + 1}: a tab`);
    lines.push({ indent: body.length - body.trimStart().length, text: body.trimStart(), number: index + 1 });
  }
  const anchors = new Map<string, Yaml>();
  const [value, rest] = block(lines, anchors);
  if (rest[0] !== undefined) throw new Error(`line ${rest[0].number}: at an unexpected position`);
  return value;
}

/** The value that starts at the first line, and the lines after it. */
function block(lines: readonly Line[], anchors: Map<string, Yaml>): [Yaml, readonly Line[]] {
  const [first] = lines;
  if (first === undefined) throw new Error('nothing there');
  const isList = first.text.startsWith('- ');
  const list: Yaml[] = [];
  const mapping: { [key: string]: Yaml } = {};
  // A key of the mapping itself replaces a merged one.
  const own = new Set<string>();
  let left = lines;
  while (left[0] !== undefined && left[0].indent === first.indent) {
    const [line, ...after] = left;
    if (line.text.startsWith('- ') !== isList) throw new Error(`line ${line.number}: a list and a mapping at once`);
    if (isList) {
      // The text after the dash counts as a line of its own, two columns further in.
      const item = { ...line, indent: line.indent + 2, text: line.text.slice(2) };
      const [value, rest] = /^[\w<-]+:( |$)/.test(item.text)
        ? block([item, ...after], anchors)
        : ([scalar(item, item.text, anchors), after] as const);
      list.push(value);
      left = rest;
      continue;
    }
    const match = /^([\w.<-]+):(?: &([\w-]+))?(?: (.+))?$/.exec(line.text);
    const [, key = '', anchor, inline] = match ?? [];
    if (match === null || (key !== '<<' && own.has(key)))
      throw new Error(`line ${line.number}: not a new "key: value"`);
    const hasBlock = inline === undefined && after[0] !== undefined && after[0].indent > line.indent;
    const [value, rest]: readonly [Yaml, readonly Line[]] = hasBlock
      ? block(after, anchors)
      : [inline === undefined ? '' : scalar(line, inline, anchors), after];
    if (anchor !== undefined) anchors.set(anchor, value);
    own.add(key);
    if (key !== '<<') mapping[key] = value;
    else if (typeof value === 'object' && !Array.isArray(value)) Object.assign(mapping, { ...value, ...mapping });
    else throw new Error(`line ${line.number}: only a mapping can be merged`);
    left = rest;
  }
  if (left[0] !== undefined && left[0].indent > first.indent) throw new Error(`line ${left[0].number}: too far in`);
  return [isList ? list : mapping, left];
}

function scalar(line: Line, text: string, anchors: ReadonlyMap<string, Yaml>): Yaml {
  const known = text.startsWith('*') ? anchors.get(text.slice(1)) : undefined;
  if (known !== undefined) return known;
  const flow = /^\[(.*)\]$/.exec(text);
  if (flow !== null) return (flow[1]?.match(/"[^"]*"|[^,]+/g) ?? []).map((item) => scalar(line, item.trim(), anchors));
  if (/^"[^"\\]*"$/.test(text)) return text.slice(1, -1);
  if (/^[[\]{}*&!|>'"%@`]|: | #/.test(text)) throw new Error(`line ${line.number}: more than plain YAML`);
  return text;
}
