import type { FileColumn } from '../domain/archive/kinds.ts';
import { RowSum } from '../domain/archive/row-sum.ts';
import { checkSchema, footerBytes, TAIL_BYTES } from '../domain/archive/schema.ts';

type Column = ArrayLike<unknown>;

/** Adds a value of a file to the text of its row, in the form in which the file has it. */
const ADD: Record<FileColumn['type'], (sum: RowSum, value: never) => void> = {
  text: addBytes,
  json: addBytes,
  decimal: (sum, value: Uint8Array) => sum.addDecimal(value),
  time: (sum, value: bigint) => void sum.addInteger(Number(value)),
  integer: (sum, value: number) => void sum.addInteger(value),
  boolean: (sum, value: boolean) => sum.addText(String(value)),
};

function addBytes(sum: RowSum, value: Uint8Array): void {
  sum.addBytes(value, 0, value.length);
}

/**
 * The number of rows of a file and its checksum, by a reader other than DuckDB, group after group. hyparquet would make floats of decimals and
 * dates of times: without the types of the columns it returns their bytes and numbers as they are.
 */
export async function digestFile(
  path: string,
  columns: readonly FileColumn[],
): Promise<{ rows: string; checksum: string }> {
  const [{ asyncBufferFromFile, parquetMetadataAsync, parquetRead }, { compressors }] = await Promise.all([
    import('hyparquet'),
    import('hyparquet-compressors'),
  ]);
  const file = await asyncBufferFromFile(path);
  const end = file.byteLength - TAIL_BYTES;
  const tail = new Uint8Array(await file.slice(Math.max(0, end), file.byteLength));
  checkSchema(new Uint8Array(await file.slice(end - footerBytes(tail, file.byteLength), end)));
  const metadata = await parquetMetadataAsync(file);
  for (const element of metadata.schema) {
    delete element.converted_type;
    delete element.logical_type;
  }
  const sum = new RowSum();
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    const rowEnd = rowStart + Number(group.num_rows);
    const parts = new Map<string, Column[]>(columns.map(({ name }) => [name, []]));
    await parquetRead({
      ...{ file, metadata, compressors, rowStart, rowEnd, utf8: false },
      columns: columns.map(({ name }) => name),
      onChunk: ({ columnName, columnData }) => parts.get(columnName)?.push(columnData),
    });
    addGroup(sum, columns, [...parts.values()], rowEnd - rowStart);
    rowStart = rowEnd;
  }
  return { rows: String(sum.rows), checksum: sum.checksum };
}

function addGroup(sum: RowSum, columns: readonly FileColumn[], parts: readonly Column[][], rows: number): void {
  const read = parts.map((each) => (each.length === 1 ? (each[0] ?? []) : each.flatMap((part) => Array.from(part))));
  for (const [index, values] of read.entries()) {
    if (values.length !== rows)
      throw new RangeError(`the column ${columns[index]?.name} has ${values.length} of ${rows} values`);
  }
  const adds = columns.map(({ type }) => ADD[type]);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < adds.length; column += 1) {
      const value = read[column]?.[row];
      if (value === null || value === undefined) sum.addNull();
      else adds[column]?.(sum, value as never);
    }
    sum.endRow();
  }
}
