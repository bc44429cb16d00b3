import { z } from 'zod';
import { ARCHIVE_KIND_NAMES } from '../../../src/domain/archive/kinds.ts';
import { VENUE_NAMES } from '../../../src/domain/markets/venue.ts';
import { listParam, param } from '../../http/input.ts';
import { epochTime } from '../wire.ts';

const count = z.int().min(0);
const day = z.string().meta({ description: 'A UTC day, `YYYY-MM-DD`.', override: { type: 'string', format: 'date' } });

export const archiveFile = z
  .object({
    file: z.string().nullable().meta({ description: 'The name of the file; null for a day that has no rows.' }),
    kind: z.enum(ARCHIVE_KIND_NAMES),
    venue: z.string(),
    date: day,
    rows: count,
    in_effect: count.meta({ description: 'Rows among them that hold the value in effect at the start of the day.' }),
    bytes: count,
    sha256: z.string().nullable().meta({ description: 'Of the bytes of the file, hexadecimal; null without a file.' }),
    checksum: z.string().meta({ description: 'The sum of the digests of all rows.' }),
    revision: z.int().min(1).meta({ description: 'Rises when rows of the day changed. The list has the last one.' }),
    schema_version: z.int().min(1).meta({ description: 'Of the columns. Refuse a file of a newer one.' }),
    start: epochTime.nullable().meta({ description: 'The time of the first row, epoch seconds; null without rows.' }),
    end: epochTime.nullable().meta({ description: 'The time of the last row, epoch seconds; null without rows.' }),
    made_at: epochTime.meta({ description: 'Epoch seconds.' }),
  })
  .meta({ description: 'A day of a venue in the archive: its file, or the statement that it has no rows.' });
export type ArchiveFileBody = z.output<typeof archiveFile>;

const SHA256 = '0f3c5a7e91b2d4860f3c5a7e91b2d4860f3c5a7e91b2d4860f3c5a7e91b2d486';
export const archiveFileExample: ArchiveFileBody = {
  file: `trades-kalshi-2026-01-01-r1-${SHA256.slice(0, 12)}.parquet`,
  kind: 'trades',
  venue: 'kalshi',
  date: '2026-01-01',
  rows: 81_234,
  in_effect: 0,
  bytes: 2_345_678,
  sha256: SHA256,
  checksum: '1180591620717411303424',
  revision: 1,
  schema_version: 1,
  start: 1_767_225_600,
  end: 1_767_311_999,
  made_at: 1_767_333_600,
};

const DATE = /^\d{4}-\d\d-\d\d$/;
const isDate = (text: string) => {
  const atMs = DATE.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  // Years that Postgres does not know.
  return !Number.isNaN(atMs) && new Date(atMs).toISOString().startsWith(text) && !text.startsWith('0000');
};
const dateParam = (description: string) =>
  z
    .string()
    .refine(isDate, 'must be a day such as 2026-01-31')
    .optional()
    .meta({ description, override: { type: 'string', format: 'date' } });

export const archiveListQuery = z.object({
  kind: listParam(ARCHIVE_KIND_NAMES, 'The kind of the rows.'),
  venue: listParam(VENUE_NAMES, 'The venue, also a disabled one.'),
  from: dateParam('The first UTC day.'),
  to: dateParam('The last UTC day.'),
  limit: param.limit,
  cursor: param.cursor,
});
