import { join } from 'node:path';
import { flattenGroups } from '../../../../src/venues/limitless/listing.ts';
import { listRecordedFiles, readRecordedJson, venueDataFolder } from '../../../support/venue-data.ts';
import type { PollKind, RecordedFile, Recordings } from '../venue-under-test.ts';

/** Later than everything recorded: nothing in it lies in the future. */
const NOW_MS = Date.UTC(2026, 9, 1);

type Json = Record<string, unknown>;

const READERS: readonly { kind: PollKind; pattern: RegExp; read(json: unknown): unknown[] }[] = [
  { kind: 'markets', pattern: /^rest_.*_markets\.json$/, read: (json) => flattenGroups(json as Json[]) },
  { kind: 'prices', pattern: /^rest_.*_markets\.json$/, read: (json) => flattenGroups(json as Json[]) },
  { kind: 'books', pattern: /^rest_.*_orderbook_.*\.json$/, read: (json) => [ofMarket(json as Json)] },
  { kind: 'trades', pattern: /^rest_.*_events_.*\.json$/, read: (json) => (json as { events: Json[] }).events },
];

/** A book as the adapter hands it to the parser; the recording does not name the NO token. */
function ofMarket(book: Json): Json {
  return { ...book, outcomeIds: [book['tokenId'], '1'] };
}

/** Everything recorded of Limitless over REST, or undefined when the folder is absent. Its frames are in `NOT_APPLICABLE`. */
export function limitlessRecordings(): Recordings | undefined {
  const folder = venueDataFolder('feeds/limitless');
  if (folder === undefined) return undefined;
  const files = listRecordedFiles(folder).flatMap((file): RecordedFile[] =>
    READERS.filter(({ pattern }) => pattern.test(file)).map(({ kind, read }) => {
      return { file: `feeds/${file}`, kind, nowMs: NOW_MS, records: read(readRecordedJson(join(folder, file))) };
    }),
  );
  return { files, unread: new Map() };
}
