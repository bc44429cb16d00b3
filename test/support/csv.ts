/** A cell: its text, and null for an empty cell without quotes. */
export type Cell = string | null;

/** The records of a text in the form of RFC 4180. @throws TypeError at the first position that the form does not allow */
export function parseCsv(text: string): Cell[][] {
  const records: Cell[][] = [];
  let at = 0;
  const cell = (): Cell => {
    if (text[at] !== '"') {
      const [plain = ''] = /^[^",\r\n]*/.exec(text.slice(at)) ?? [];
      at += plain.length;
      return plain === '' ? null : plain;
    }
    const [whole, inner = ''] = /^"((?:[^"]|"")*)"/.exec(text.slice(at)) ?? [];
    if (whole === undefined) throw new TypeError(`a quote at ${at} has no end`);
    at += whole.length;
    return inner.replaceAll('""', '"');
  };
  while (at < text.length) {
    const record = [cell()];
    while (text[at] === ',') {
      at += 1;
      record.push(cell());
    }
    if (!text.startsWith('\r\n', at)) throw new TypeError(`no end of a line at ${at}: ${text.slice(at, at + 20)}`);
    at += 2;
    records.push(record);
  }
  return records;
}

/** The records after the header, by the names of the header. */
export function csvRows(text: string): Record<string, Cell>[] {
  const [header = [], ...records] = parseCsv(text);
  return records.map((record) => {
    if (record.length !== header.length) throw new TypeError(`${record.length} cells for ${header.length} columns`);
    return Object.fromEntries(header.map((name, index) => [String(name), record[index] ?? null]));
  });
}
