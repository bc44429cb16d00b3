import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { ArchiveFolder } from '../../../api/reads/archive-folder.ts';
import { ArchiveHistory } from '../../../api/reads/archive-history.ts';
import { ArchiveReader } from '../../../src/archive/reader.ts';
import { FetchedFiles } from '../../../src/archive/store/fetched-files.ts';
import { ObjectStore } from '../../../src/archive/store/s3.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { createTestDatabase } from '../../support/postgres/database.ts';
import { startSurroundings } from '../../support/processes/system.ts';
import { type BackendKind, wipeQueues } from '../../support/redis/queue-backends.ts';
import { startS3 } from '../../support/s3/server.ts';

/** A database, the folder of its archive, and the reads of an API; with an object store the API is on another machine. */
export async function startArchiveSystem(
  kind: BackendKind,
  { isStored, environment }: { isStored: boolean; environment: Readonly<Record<string, string>> },
) {
  const database = await createTestDatabase();
  const { db } = database;
  const dir = await mkdtemp(join(tmpdir(), 'archive-'));
  const readDir = isStored ? await mkdtemp(join(tmpdir(), 'archive-read-')) : dir;
  const s3 = isStored ? await startS3() : undefined;
  const redisUrl = kind === 'redis' ? inject('redisUrl') : null;
  const queuePrefix = `t${randomBytes(6).toString('hex')}`;
  const around = await startSurroundings({
    databaseUrl: database.url,
    queuePrefix,
    ...(redisUrl !== null && { redisUrl }),
    environment: {
      ARCHIVE_DIR: dir,
      MAINTAIN_STORAGE_MS: '1000',
      ...(s3 && {
        ARCHIVE_URL: `s3://${s3.bucket}/campaign`,
        ARCHIVE_S3_ENDPOINT: s3.url,
        ARCHIVE_S3_ACCESS_KEY_ID: s3.key.accessKeyId,
        ARCHIVE_S3_SECRET_ACCESS_KEY: s3.key.secretAccessKey,
      }),
      ...environment,
    },
  });
  const log = createLogger({ process: 'test', level: 'silent' });
  const { signal } = new AbortController();
  const store =
    s3 && new ObjectStore({ bucket: s3.bucket, prefix: 'campaign/', endpoint: s3.url, region: 'us-east-1', ...s3.key });
  const fetched = store && new FetchedFiles({ dir: readDir, store, maxBytes: 1e9, signal });
  const reader = new ArchiveReader(readDir);
  const history = new ArchiveHistory({ db, folder: new ArchiveFolder(readDir, log, fetched), reader, log });
  return {
    ...{ db, url: database.url, dir, s3, store, history, log, signal },
    /** Of the processes. */
    environment: around.environment,
    async close() {
      await reader.close();
      await around.close();
      if (redisUrl !== null) await wipeQueues(kind, db, queuePrefix);
      await database.drop();
      await s3?.close();
      for (const folder of [dir, readDir]) await rm(folder, { recursive: true, force: true });
    },
  };
}
