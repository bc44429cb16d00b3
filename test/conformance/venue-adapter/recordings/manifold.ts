import { join } from 'node:path';
import { listRecordedFiles, readRecordedJson, venueDataFolder } from '../../../support/venue-data.ts';
import type { PollKind, RecordedFile, Recordings } from '../venue-under-test.ts';

/** Just after the newest answer was recorded, on 2022-10-10. */
export const RECORDED_AT_MS = 1_665_432_400_000;

/** One request of a cassette; redirects have a status of 308 and no JSON. */
interface Interaction {
  uri: string;
  status: { code: number };
  body: unknown;
}

const READERS: readonly { kind: PollKind; pattern: RegExp; read(body: unknown): unknown[] }[] = [
  { kind: 'markets', pattern: /test_(get|list)_markets\.json$/, read: listed },
  { kind: 'markets', pattern: /test_get_market_by_[a-z]+\.json$/, read: listed },
  // Markets contained their bets then, in the form of the bet feed.
  {
    kind: 'trades',
    pattern: /test_get_market_by_[a-z]+\.json$/,
    read: (body) => listed((body as { bets?: unknown }).bets),
  },
  { kind: 'trades', pattern: /test_(get|list)_bet__[a-z]+\.json$/, read: listed },
];

/** Recorded endpoints that the adapter does not read. */
const UNREAD: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /groups\.json$/, reason: 'groups' },
  { pattern: /user\.json$/, reason: 'users' },
];

/** All recordings of Manifold, or undefined when the folder is absent. */
export function manifoldRecordings(): Recordings | undefined {
  const folder = venueDataFolder('manifold');
  if (folder === undefined) return undefined;
  const files: RecordedFile[] = [];
  const unread = new Map<string, string>();
  for (const file of listRecordedFiles(folder)) {
    const readers = READERS.filter((each) => each.pattern.test(file));
    for (const { kind, read } of readers) {
      const answers = interactions(join(folder, file)).filter((each) => each.status.code === 200);
      files.push({ file, kind, nowMs: RECORDED_AT_MS, records: answers.flatMap((each) => read(each.body)) });
    }
    if (readers.length === 0) {
      unread.set(file, UNREAD.find((each) => each.pattern.test(file))?.reason ?? 'unaccounted');
    }
  }
  return { files, unread };
}

function interactions(path: string): Interaction[] {
  return readRecordedJson(path) as Interaction[];
}

/** A bare record or a list of them. */
function listed(body: unknown): unknown[] {
  return Array.isArray(body) ? body : [body];
}
