import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { startTestCluster, type TestCluster } from '../../support/postgres/embedded-cluster.ts';
import { createTemplate } from '../../support/postgres/template.ts';

/** A server that only this scenario uses and may damage, and the database on it. */
export interface OwnPostgres {
  readonly server: TestCluster;
  readonly database: TestDatabase;
  stop(): Promise<void>;
}

/** Syncs to disk, like production servers. `dataDir`: see TestClusterOptions. */
export async function startOwnPostgres(options: { dataDir?: string } = {}): Promise<OwnPostgres> {
  const server = await startTestCluster({ durable: true, ...options });
  try {
    await createTemplate(server.adminUrl);
    const database = await createTestDatabase({ adminUrl: server.adminUrl });
    return {
      server,
      database,
      async stop() {
        await database.release();
        await server.stop();
      },
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}
