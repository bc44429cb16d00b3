import { OddswireError } from '../values/errors.ts';
import { SCHEMA_VERSION } from './kinds.ts';

/** The key of the schema version in the metadata of a file. */
export const SCHEMA_KEY = 'oddswire_schema';
/** The length of the metadata and the last word of the format end a file of Parquet. */
export const TAIL_BYTES = 8;
const MAGIC = 'PAR1';

/** The length of the metadata, which lie before the last bytes of a file. @throws OddswireError `archive_file_unreadable` */
export function footerBytes(tail: Uint8Array, fileBytes: number): number {
  const bytes = Buffer.from(tail);
  const length = bytes.length === TAIL_BYTES && bytes.toString('latin1', 4) === MAGIC ? bytes.readUInt32LE(0) : 0;
  if (length > 0 && length <= fileBytes - TAIL_BYTES) return length;
  throw new OddswireError('archive_file_unreadable', 'the file is not a whole file of Parquet');
}

/**
 * The schema version in the metadata of a file: without a package, because the CLI has none for Parquet. A pair of a key and a value is two
 * texts there, each behind a byte for its type and one for its length.
 * @throws OddswireError `archive_file_unreadable` for a file of another program, `archive_schema_newer` for a file of a later release
 */
export function checkSchema(footer: Uint8Array): number {
  const bytes = Buffer.from(footer);
  const key = Buffer.from(`\x18${String.fromCharCode(SCHEMA_KEY.length)}${SCHEMA_KEY}\x18`, 'latin1');
  const at = bytes.lastIndexOf(key);
  const from = at + key.length + 1;
  const text = at < 0 ? '' : bytes.toString('latin1', from, from + (bytes[from - 1] ?? 0));
  if (!/^[1-9]\d{0,8}$/.test(text)) {
    throw new OddswireError('archive_file_unreadable', `the metadata of the file have no ${SCHEMA_KEY}`);
  }
  const version = Number.parseInt(text, 10);
  if (version > SCHEMA_VERSION) {
    throw new OddswireError(
      'archive_schema_newer',
      `the file has schema version ${version}; this release reads versions up to ${SCHEMA_VERSION}`,
    );
  }
  return version;
}
