/** The end of a line (RFC 4180). */
const END = '\r\n';
const NEEDS_QUOTES = /[",\r\n]|^\s|\s$/;
const STRUCTURE = /["{}[\]]/g;
const SCALAR = /[^,}\]\s]+/y;
const SPACE = /\s*/y;

/** A text as a cell. An empty text has quotes, because an empty cell without quotes means null or unknown. */
function textCell(text: string): string {
  return text === '' || NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A value, given as JSON text, as a cell: numbers keep their digits, arrays and objects stay JSON, null is empty. */
export function jsonCell(json: string): string {
  if (json === 'null') return '';
  const [first] = json;
  if (first === '"') return textCell(jsonText(json));
  return first === '{' || first === '[' ? textCell(json) : json;
}

/** A line of cells, with its end. */
export function csvLine(cells: readonly string[]): string {
  return cells.join(',') + END;
}

/**
 * The JSON text of a list of objects as CSV: a header line, then a line per object. The digits of numbers pass through unchanged.
 * @throws TypeError for an object with a field that is not a column
 */
export function csvOfList(list: string, columns: readonly string[]): string {
  const places = new Map(columns.map((name, index) => [name, index]));
  let csv = csvLine(columns.map(textCell));
  for (const item of itemsOf(list)) {
    const cells = new Array<string>(columns.length).fill('');
    for (const [name, value] of fieldsOf(item)) {
      const place = places.get(name);
      if (place === undefined) throw new TypeError(`the list has no column ${name}`);
      cells[place] = jsonCell(value);
    }
    csv += csvLine(cells);
  }
  return csv;
}

/** The names of a JSON object with the JSON texts of their values, in their order. */
export function fieldsOf(object: string): [name: string, json: string][] {
  const fields: [string, string][] = [];
  let at = afterSpace(object, 1);
  while (object[at] === '"') {
    const nameEnd = valueEnd(object, at);
    const start = afterSpace(object, afterSpace(object, nameEnd) + 1);
    const end = valueEnd(object, start);
    fields.push([jsonText(object.slice(at, nameEnd)), object.slice(start, end)]);
    const comma = afterSpace(object, end);
    at = object[comma] === ',' ? afterSpace(object, comma + 1) : object.length;
  }
  return fields;
}

/** The JSON texts of the values of a JSON array. */
function itemsOf(list: string): string[] {
  const items: string[] = [];
  let at = afterSpace(list, 1);
  while (at < list.length && list[at] !== ']') {
    const end = valueEnd(list, at);
    items.push(list.slice(at, end));
    const comma = afterSpace(list, end);
    at = list[comma] === ',' ? afterSpace(list, comma + 1) : list.length;
  }
  return items;
}

/** The value of the JSON text of a string. */
function jsonText(json: string): string {
  return json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1);
}

function afterSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.exec(text);
  return SPACE.lastIndex;
}

/** The position behind the value that begins at this position of valid JSON. */
function valueEnd(text: string, at: number): number {
  if (text[at] === '"') return stringEnd(text, at);
  if (text[at] !== '{' && text[at] !== '[') {
    SCALAR.lastIndex = at;
    SCALAR.exec(text);
    return SCALAR.lastIndex;
  }
  let depth = 0;
  STRUCTURE.lastIndex = at;
  for (let found = STRUCTURE.exec(text); found !== null; found = STRUCTURE.exec(text)) {
    const [sign] = found;
    if (sign === '"') STRUCTURE.lastIndex = stringEnd(text, found.index);
    else depth += sign === '{' || sign === '[' ? 1 : -1;
    if (depth === 0) return STRUCTURE.lastIndex;
  }
  throw new TypeError('a text that is not JSON');
}

/** The position behind the string that begins at this position: behind the first quote after an even number of backslashes. */
function stringEnd(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (text[first - 1] === '\\') first -= 1;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  throw new TypeError('a text that is not JSON');
}
