import { z } from 'zod';
import { isFileName } from '../../../src/domain/archive/file.ts';
import { ARCHIVE_KIND_NAMES } from '../../../src/domain/archive/kinds.ts';
import { VENUE_NAMES } from '../../../src/domain/markets/venue.ts';
import { logLimited } from '../../../src/observe/limited-lines.ts';
import type { Logger } from '../../../src/observe/logger.ts';
import {
  type Reservation,
  readArchiveUse,
  reserveArchiveBytes,
  returnArchiveBytes,
} from '../../../src/store/accounts/archive-use.ts';
import type { QuotaDefaults } from '../../../src/store/accounts/quotas.ts';
import { type CatalogFile, findFile, type ListedFile, listFiles } from '../../../src/store/archive/file-list.ts';
import type { Database } from '../../../src/store/db/tx.ts';
import type { ApiContext, Caller, RouteGroup } from '../../context.ts';
import {
  type ArchiveFileBody,
  archiveFile,
  archiveFileExample,
  archiveListQuery,
} from '../../contract/archive/file.ts';
import { cursorMeta } from '../../contract/wire.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import { type ByteRange, byteRangeOf } from '../../http/byte-range.ts';
import { epochSeconds, matchesEtag } from '../../http/respond.ts';
import { downloadRoute, marketRoute, type Route } from '../../http/route.ts';
import { type ArchiveFolder, FilePart } from '../../reads/archive-folder.ts';
import type { ReadDeps } from '../../reads/read-deps.ts';

const PARQUET_TYPE = 'application/vnd.apache.parquet';
/** The name of a file contains the digest of its bytes. */
const CACHE_CONTROL = 'private, max-age=31536000, immutable, no-transform';

export interface DownloadDeps {
  db: Database;
  /** The folder of ARCHIVE_DIR; absent: the archive is off. */
  archive?: ArchiveFolder | undefined;
  quotas: QuotaDefaults;
  log: Logger;
}

/** @throws ApiError `archive_off` */
function openArchive({ archive }: Pick<DownloadDeps, 'archive'>): ArchiveFolder {
  if (archive) return archive;
  throw new ApiError('archive_off', 'this server has no archive');
}

/** GET /v1/archive/{archive_file}: the bytes of a file, whole or in part. */
function downloadRoutes(deps: DownloadDeps, group: RouteGroup): Route[] {
  return [
    downloadRoute(
      {
        path: '/v1/archive/:archive_file',
        operationId: 'getArchiveFile',
        summary: 'Download a file of the archive',
        description:
          'The bytes of the file, or of one part with `Range`. A file never changes: its ETag is its sha256. A superseded file stays for a ' +
          'while, then it is 404. The bytes count for the quota of the account before they are sent; unsent ones are given back.',
        tag: 'archive',
        group,
        answer: { description: 'The file.', mediaType: PARQUET_TYPE },
        errors: [
          'archive_off',
          'archive_file_not_found',
          'range_not_satisfiable',
          'archive_quota_exceeded',
          'archive_unavailable',
        ],
      },
      async ({ ctx, caller, params: { archive_file: name } }) => {
        const folder = openArchive(deps);
        const file = isFileName(name) ? await findFile(deps.db, name) : null;
        if (!file) throw new ApiError('archive_file_not_found', 'no such file; list the day for its present one');
        const digest = `sha-256=:${Buffer.from(file.sha256, 'hex').toString('base64')}:`;
        const etag = `"${file.sha256}"`;
        ctx.set({ ETag: etag, 'Cache-Control': CACHE_CONTROL });
        ctx.vary(['Accept-Encoding', 'Authorization']);
        if (matchesEtag(ctx.get('If-None-Match'), `W/${etag}`)) {
          ctx.status = 304;
          return;
        }
        const part = requestedPart(ctx, file.bytes, etag);
        const body = await openBody(deps, folder, { ctx, caller, file, part });
        ctx.status = part ? 206 : 200;
        ctx.type = PARQUET_TYPE;
        ctx.set({ 'Accept-Ranges': 'bytes', 'Repr-Digest': digest });
        if (part) ctx.set('Content-Range', `bytes ${part.start}-${part.start + part.length - 1}/${file.bytes}`);
        else ctx.set('Content-Digest', digest);
        // Clients count the bytes of the file.
        ctx.compress = false;
        if (body) ctx.body = body;
        ctx.length = part?.length ?? file.bytes;
      },
    ),
  ];
}

/** Undefined for the whole file. @throws ApiError `range_not_satisfiable` */
function requestedPart(ctx: ApiContext, size: number, etag: string): ByteRange | undefined {
  const header = ctx.get('Range');
  // Only GET has parts (RFC 9110 section 14.2). Strong comparison: a weak tag or a date never matches.
  if (header === '' || ctx.method !== 'GET') return undefined;
  const ifRange = ctx.get('If-Range').trim();
  if (ifRange !== '' && ifRange !== etag) return undefined;
  const part = byteRangeOf(header, size);
  if (part === null) {
    throw new ApiError('range_not_satisfiable', `the file has ${size} bytes`, {
      headers: { 'Content-Range': `bytes */${size}` },
    });
  }
  return part;
}

interface Download {
  ctx: ApiContext;
  caller: Caller;
  file: CatalogFile;
  part: ByteRange | undefined;
}

/** The bytes to send, which count for the quota; undefined for HEAD, which only checks the file. @throws ApiError */
async function openBody(
  deps: DownloadDeps,
  folder: ArchiveFolder,
  { ctx, caller, file, part }: Download,
): Promise<FilePart | undefined> {
  const range = part ?? { start: 0, length: file.bytes };
  const isHead = ctx.method === 'HEAD';
  const reserved = isHead ? undefined : await reserve(deps, caller, range.length);
  const giveBack = async (bytes: number) => {
    if (reserved && bytes > 0) await unreserve(deps, reserved, bytes);
  };
  try {
    const handle = await folder.open(file);
    if (handle === null) {
      throw new ApiError(
        'archive_file_not_found',
        'the file was superseded and is removed; list the day for its present one',
      );
    }
    if (isHead) {
      await handle.close();
      return undefined;
    }
    const body = new FilePart(handle, range);
    body.once('close', () => void giveBack(range.length - body.sent));
    return body;
  } catch (error) {
    await giveBack(range.length);
    throw error;
  }
}

/** @throws ApiError `archive_quota_exceeded` */
async function reserve({ db, quotas }: DownloadDeps, { accountId }: Caller, bytes: number): Promise<Reservation> {
  const reserved = await reserveArchiveBytes(db, accountId, bytes, quotas.archiveMbPerDay);
  if (reserved) return reserved;
  const { used, limit, resetSeconds } = await readArchiveUse(db, accountId, quotas.archiveMbPerDay);
  const left = Math.max(0, limit - used);
  throw new ApiError(
    'archive_quota_exceeded',
    `this account may download ${limit} bytes of the archive per UTC day, and ${left} are left: the request needs ${bytes}`,
    { headers: { 'Retry-After': String(Math.max(1, resetSeconds)) } },
  );
}

/** Bytes that stay counted after a failure end with the day. */
function unreserve({ db, log }: DownloadDeps, reserved: Reservation, bytes: number): Promise<void> {
  return returnArchiveBytes(db, reserved, bytes).catch((error: unknown) =>
    logLimited(log, { level: 'warn', fields: { err: error, bytes }, message: 'unsent archive bytes stay counted' }),
  );
}

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
