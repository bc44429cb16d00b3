import { z } from 'zod';
import { ARCHIVE_KIND_NAMES } from '../../../src/domain/archive/kinds.ts';
import { VENUE_NAMES } from '../../../src/domain/markets/venue.ts';
import { type ListedFile, listFiles } from '../../../src/store/archive/file-list.ts';
import type { RouteGroup } from '../../context.ts';
import {
  type ArchiveFileBody,
  archiveFile,
  archiveFileExample,
  archiveListQuery,
} from '../../contract/archive/file.ts';
import { cursorMeta } from '../../contract/envelope.ts';
import { invalidRequest } from '../../errors.ts';
import { epochSeconds } from '../../http/respond.ts';
import { marketRoute, type Route } from '../../http/route.ts';
import type { ReadDeps } from '../../reads/read-deps.ts';
import { type DownloadDeps, downloadRoutes, openArchive } from './download.ts';

const ARCHIVE_GROUP: RouteGroup = { header: 'Authorization', scope: 'archive' };

/** GET /v1/archive and /v1/archive/{archive_file}. */
export function archiveRoutes(deps: ReadDeps & DownloadDeps): Route[] {
  return [
    marketRoute(
      {
        path: '/v1/archive',
        operationId: 'listArchiveFiles',
        tag: 'archive',
        group: ARCHIVE_GROUP,
        summary: 'List the files of the archive',
        description:
          'The last revision of each archived day, by kind, venue and day. A day without rows is listed with `file: null`; a day that is not listed is not archived.',
        query: archiveListQuery,
        answer: {
          description: 'Files and empty days.',
          data: z.array(archiveFile),
          example: [archiveFileExample],
          meta: cursorMeta,
          metaExample: { next_cursor: null },
        },
        errors: ['archive_off', 'invalid_cursor'],
      },
      ({ query: { kind, venue, from, to, limit, cursor } }) => {
        openArchive(deps);
        if (from !== undefined && to !== undefined && from > to) {
          throw invalidRequest([{ path: 'from', message: 'must not be later than to' }]);
        }
        const kinds = kind && ARCHIVE_KIND_NAMES.filter((each) => kind.includes(each));
        const venues = venue && VENUE_NAMES.filter((each) => venue.includes(each));
        const scope = JSON.stringify(['archive', kinds, venues, from, to]);
        return {
          key: [scope, limit, cursor],
          load: async () => {
            const [placeKind = '', placeVenue = '', date = ''] =
              cursor === undefined ? [] : deps.cursors.decode(scope, cursor);
            const after = cursor === undefined ? undefined : { kind: placeKind, venue: placeVenue, date };
            const { files, next } = await listFiles(deps.db, { kinds, venues, from, to }, { limit, after });
            const next_cursor = next ? deps.cursors.encode(scope, [next.kind, next.venue, next.date]) : null;
            return { data: files.map(presentFile), meta: { next_cursor }, freshness: 'latest' };
          },
        };
      },
    ),
    ...downloadRoutes(deps, ARCHIVE_GROUP),
  ];
}

function presentFile(listed: ListedFile): ArchiveFileBody {
  const { file, kind, venue, date, rows, bytes, sha256, checksum, revision, start, end } = listed;
  return {
    file,
    kind,
    venue,
    date,
    rows,
    in_effect: listed.inEffect,
    bytes,
    sha256,
    checksum,
    revision,
    schema_version: listed.schemaVersion,
    start: start && epochSeconds(start),
    end: end && epochSeconds(end),
    made_at: epochSeconds(listed.madeAt),
  };
}
